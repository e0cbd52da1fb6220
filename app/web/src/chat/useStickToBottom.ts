import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** Nearer to the end than this, the reader is taken to be at it. */
const SLACK_PX = 64;

interface StickToBottom {
  /** The element that scrolls. */
  viewport: RefObject<HTMLDivElement | null>;
  /** What grows inside it. */
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  scrollToEnd: () => void;
}

/** Keep the end in view while content grows, unless the reader has scrolled away from it. */
export function useStickToBottom(): StickToBottom {
  const viewport = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sticking = useRef(true);
  const [isAtEnd, setIsAtEnd] = useState(true);

  const scrollToEnd = useCallback(() => {
    sticking.current = true;
    setIsAtEnd(true);
    viewport.current?.scrollTo({ top: viewport.current.scrollHeight });
  }, []);

  useEffect(() => {
    const view = viewport.current;
    if (!view || !content.current) return;
    let lastTop = view.scrollTop;

    const onScroll = () => {
      const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < SLACK_PX;
      // Content that grows moves the end away without the reader moving: only upward counts.
      if (atEnd) sticking.current = true;
      else if (view.scrollTop < lastTop) sticking.current = false;
      lastTop = view.scrollTop;
      setIsAtEnd(atEnd || sticking.current);
    };
    const growth = new ResizeObserver(() => {
      if (sticking.current) view.scrollTo({ top: view.scrollHeight });
    });

    view.addEventListener("scroll", onScroll, { passive: true });
    growth.observe(content.current);
    growth.observe(view);
    return () => {
      view.removeEventListener("scroll", onScroll);
      growth.disconnect();
    };
  }, []);

  return { viewport, content, isAtEnd, scrollToEnd };
}
