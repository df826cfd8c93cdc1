/** Figures as people read them: ages, durations, tokens, money. What is not known is said, never drawn as nothing. */

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return span(ms);
}

/** Whole seconds: an age or a wait. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

function span(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return two([minutes, "min"], [seconds % 60, "s"]);
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return two([hours, "h"], [minutes % 60, "min"]);
  return two([Math.floor(hours / 24), "d"], [hours % 24, "h"]);
}

function two(...parts: readonly (readonly [number, string])[]): string {
  return parts
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(" ");
}

export function tokens(count: number): string {
  if (count < 10_000) return count.toLocaleString("en");
  if (count < 100_000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** Never for what is not known: see `cost`. */
export function money(usd: number): string {
  // Nothing at all, which is known: two zeros behind a point look like a price that was looked up.
  if (usd === 0) return "$0";
  return usd > 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

export interface Cost {
  readonly known: number;
  /** Something in it had no known price. */
  readonly isPartial: boolean;
  readonly unpriced?: number;
}

/** A sum that leaves something out says so; nothing known is unknown, not nothing. */
export function cost({ known, isPartial, unpriced }: Cost): string {
  if (!isPartial) return money(known);
  const rest = unpriced === undefined ? "what has no known price" : requests(unpriced);
  return known === 0 ? "price unknown" : `${money(known)} + ${rest}`;
}

export function requests(unpriced: number): string {
  return `${unpriced} request${unpriced === 1 ? "" : "s"} without a price`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

export function number(value: number): string {
  return value.toLocaleString("en");
}

/** Of the day, in the browser's zone. */
export function clock(at: number, to: "minute" | "second" | "ms" = "second"): string {
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString();
  return shifted.slice(11, to === "minute" ? 16 : to === "second" ? 19 : 23);
}

export function fullTime(at: number): string {
  const offset = -new Date(at).getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((part) =>
    String(part).padStart(2, "0"),
  );
  const shifted = new Date(at + offset * 60_000).toISOString();
  return `${shifted.slice(0, 10)} ${shifted.slice(11, 19)} ${offset < 0 ? "-" : "+"}${hours}:${minutes}`;
}

/** Today its time, else its day too. */
export function when(at: number, now: number): string {
  const isToday = fullTime(at).slice(0, 10) === fullTime(now).slice(0, 10);
  return isToday ? clock(at, "minute") : fullTime(at).slice(0, 16);
}

/** The last part of a path, which people know a folder by. */
export function folderName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || path;
}
