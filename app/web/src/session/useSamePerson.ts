import { useEffect, useRef } from "react";

/**
 * Leave the page when somebody else has signed in, in another tab of this browser.
 *
 * What is on the screen belongs to the first person, what the cookie fetches to the second.
 */
export function useSamePerson(userId: string | undefined): void {
  const first = useRef<string>(undefined);
  useEffect(() => {
    if (userId === undefined) return;
    first.current ??= userId;
    if (first.current !== userId) window.location.assign("/");
  }, [userId]);
}
