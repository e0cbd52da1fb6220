import { useEffect, useState } from "react";

/** Whether this has been so for a while, and nothing about it has changed meanwhile. */
export function useHeld(isSo: boolean, ms: number, about: unknown = null): boolean {
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    if (!isSo) return;
    const timer = setTimeout(() => {
      setHeld(true);
    }, ms);
    return () => {
      clearTimeout(timer);
      setHeld(false);
    };
  }, [isSo, ms, about]);
  return isSo && isHeld;
}
