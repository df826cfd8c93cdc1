/** Single keys, outside of fields only, and off where the user has turned them off. */
import { useLayoutEffect, useRef } from "react";
import { preferences } from "../preferences.ts";

export type Keys = Readonly<Record<string, () => void>>;

/** `a`, `A` with shift, `Enter`, `g n` for one key after the other. */
export function useKeys(keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  // What is drawn has its keys at once.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
      if (preferences.get().areKeysOff || isTyping(event)) return;
      const run = current.current[event.key];
      if (run === undefined) return;
      event.preventDefault();
      run();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/** A button has its own Enter and Space; arrows move in what scrolls. */
export function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.matches("input:is([type=checkbox], [type=radio])")) return key === " ";
  if (target.closest("input, textarea, select, [contenteditable], dialog") !== null) return true;
  return (key === "Enter" || key === " ") && target.closest("a, button, summary, label") !== null;
}
