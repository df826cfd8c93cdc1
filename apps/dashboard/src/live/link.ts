/**
 * Whether the server answers. Every answer and every byte of a stream is a sign; a beat comes every 15 seconds. Without a
 * sign the page says so: times stand still, nothing spins, and what is shown is "as of" the last sign.
 */
import { createStore, useStore } from "./store.ts";

export interface Link {
  readonly state: "connecting" | "live" | "lost";
  /** Of the server's clock, when it was heard last. */
  readonly heardAt: number | undefined;
  /** Of the newest event that was heard of. */
  readonly position: number | undefined;
}

/** A beat comes every 15 seconds. */
const STALE_MS = 20_000;
const TICK_MS = 1000;

export const link = createStore<Link>({ state: "connecting", heardAt: undefined, position: undefined });
const ticks = createStore(0);

/** The server's clock minus the browser's, which may be wrong by hours. */
let offsetMs = 0;

export function setServerTime(now: number): void {
  const moved = now - Date.now() - offsetMs;
  offsetMs += moved;
  const { heardAt } = link.get();
  if (heardAt !== undefined) link.set({ ...link.get(), heardAt: heardAt + moved });
}

function serverTime(): number {
  return Date.now() + offsetMs;
}

export function heard(): void {
  link.set({ ...link.get(), state: "live", heardAt: serverTime() });
}

export function lost(): void {
  if (link.get().state !== "lost") link.set({ ...link.get(), state: "lost" });
}

export function heardEvent(position: number): void {
  if (position > (link.get().position ?? 0)) link.set({ ...link.get(), position });
}

/** One timer for all ages, and none for a page nobody sees. */
export function startTicking(): () => void {
  const timer = setInterval(() => {
    if (document.hidden) return;
    const { state, heardAt } = link.get();
    if (state === "live" && heardAt !== undefined && serverTime() - heardAt > STALE_MS) lost();
    ticks.set(ticks.get() + 1);
  }, TICK_MS);
  return () => clearInterval(timer);
}

export interface Now {
  readonly at: number;
  /** There is no connection: everything is at least as old as it says. */
  readonly isFrozen: boolean;
}

export function useNow(): Now {
  useStore(ticks);
  const { state, heardAt } = useStore(link);
  const isFrozen = state === "lost";
  return { at: isFrozen ? (heardAt ?? serverTime()) : serverTime(), isFrozen };
}
