/** Colour for people, and the shapes of figures they read. */
import { visibleLine } from "@heddle/protocol";

export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

export type ColorChoice = "always" | "never" | "auto";

export function styleFor(choice: ColorChoice, isTerminal: boolean, env: NodeJS.ProcessEnv): Style {
  const isOn = choice === "always" || (choice === "auto" && isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb");
  const paint =
    (code: number) =>
    (text: string): string =>
      isOn && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { dim: paint(2), bold: paint(1), red: paint(31), green: paint(32), yellow: paint(33) };
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function money(costUsd: number | undefined): string {
  if (costUsd === undefined) return "cost unknown";
  return costUsd > 0 && costUsd < 0.01 ? `$${costUsd.toFixed(5)}` : `$${costUsd.toFixed(2)}`;
}

/** Said once an answer: it is whole, and something that came with it could not be read. */
export function skippedText({ events, firstBytes }: { readonly events: number; readonly firstBytes: string }): string {
  const what = events === 1 ? "1 event" : `${events} events`;
  return visibleLine(`${what} in the answer could not be read; nothing of the answer is missing: ${firstBytes}`);
}
