/**
 * Act on names as they come: on the first one at once, on those that come within the pause after
 * it together, when it is over.
 */
export function gathered(pauseMs: number, act: (names: ReadonlySet<string>) => void) {
  let waiting = new Set<string>();
  let isPausing = false;

  function flush() {
    const names = waiting;
    waiting = new Set();
    isPausing = names.size > 0;
    if (!isPausing) return;
    setTimeout(flush, pauseMs);
    act(names);
  }

  return (name: string): void => {
    waiting.add(name);
    if (!isPausing) flush();
  };
}
