/** Colour for people, and the shapes of figures they read. */
import { counted, visibleLine } from "@heddle/protocol";

export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  red(text: string): string;
  /** Green, and nothing else is: checks have decided. */
  verified(text: string): string;
  yellow(text: string): string;
}

export type ColorChoice = "always" | "never" | "auto";

export function styleFor(choice: ColorChoice, isTerminal: boolean, env: NodeJS.ProcessEnv): Style {
  const isOn = choice === "always" || (choice === "auto" && isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb");
  const paint =
    (code: number) =>
    (text: string): string =>
      isOn && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { dim: paint(2), bold: paint(1), red: paint(31), verified: paint(32), yellow: paint(33) };
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return twoUnits([minutes, "min"], [seconds % 60, "s"]);
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return twoUnits([hours, "h"], [minutes % 60, "min"]);
  return twoUnits([Math.floor(hours / 24), "d"], [hours % 24, "h"]);
}

function twoUnits(...parts: readonly (readonly [number, string])[]): string {
  return parts
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(" ");
}

const SHOWN = { minute: [0, 16], second: [0, 19], clock: [11, 23] } as const;

/** In the local time zone: `2026-11-17 18:48`; `clock` is the time of day alone. */
export function localTime(at: number, to: keyof typeof SHOWN = "minute"): string {
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return shifted
    .toISOString()
    .slice(...SHOWN[to])
    .replace("T", " ");
}

/** The same where a zone may be needed, because it is read elsewhere or later: `2026-11-17 18:48:05 +01:00`. */
export function zonedTime(at: number): string {
  const offset = -new Date(at).getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((n) =>
    String(n).padStart(2, "0"),
  );
  return `${localTime(at, "second")} ${offset < 0 ? "-" : "+"}${hours}:${minutes}`;
}

export function money(costUsd: number | undefined): string {
  if (costUsd === undefined) return "cost unknown";
  return costUsd > 0 && costUsd < 0.01 ? `$${costUsd.toFixed(5)}` : `$${costUsd.toFixed(2)}`;
}

/** Said once an answer: it is whole, and something that came with it could not be read. */
export function skippedText({ events, firstBytes }: { readonly events: number; readonly firstBytes: string }): string {
  const what = counted(events, "event");
  return visibleLine(`${what} in the answer could not be read; nothing of the answer is missing: ${firstBytes}`);
}
