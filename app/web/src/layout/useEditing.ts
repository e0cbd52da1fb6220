import { useEffect, useRef, useState } from "react";

/** Whether something is being edited in its place. The focus goes back to where it began. */
export function useEditing() {
  const [isEditing, setEditing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    if (wasEditing.current && !isEditing) button.current?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  return {
    isEditing,
    button,
    open: () => {
      setEditing(true);
    },
    close: () => {
      setEditing(false);
    },
  };
}
