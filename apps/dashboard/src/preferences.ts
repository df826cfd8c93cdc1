/** What this browser keeps for itself: how the page looks, and what has been seen. Nothing of it is asked of the server. */
import { createStore } from "./live/store.ts";

export interface Preferences {
  readonly theme: "system" | "dark" | "light";
  readonly areKeysOff: boolean;
  readonly textSize: "normal" | "large";
}

const KEY = "heddle.preferences";
const DEFAULTS: Preferences = { theme: "system", areKeysOff: false, textSize: "normal" };

export const preferences = createStore<Preferences>(DEFAULTS);

export function applyPreferences(): void {
  preferences.set({ ...DEFAULTS, ...readKept<Partial<Preferences>>(KEY) });
  draw();
}

export function prefer(change: Partial<Preferences>): void {
  preferences.set({ ...preferences.get(), ...change });
  keep(KEY, preferences.get());
  draw();
}

function draw(): void {
  const { theme, textSize } = preferences.get();
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
  dataset["text"] = textSize;
}

/** A browser that keeps nothing, or something else, is one that has just begun. */
export function readKept<T>(key: string): T | undefined {
  try {
    const text = localStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}

export function keep(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works without it.
  }
}
