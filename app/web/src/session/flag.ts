import { useSyncExternalStore } from "react";

/** Something about this page that is so or not, and that whoever shows it hears of. */
export class Flag {
  #isSet = false;
  readonly #listeners = new Set<() => void>();

  get isSet(): boolean {
    return this.#isSet;
  }

  readonly set = (isSet = true): void => {
    if (this.#isSet === isSet) return;
    this.#isSet = isSet;
    this.#listeners.forEach((listener) => {
      listener();
    });
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };
}

/** Whether it is so. */
export function useFlag(flag: Flag): boolean {
  return useSyncExternalStore(flag.subscribe, () => flag.isSet);
}
