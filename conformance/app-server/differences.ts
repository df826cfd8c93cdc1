/**
 * Where Heddle's app-server sends something else than Codex's, and why. The first entry that fits explains a difference. One
 * that no entry explains fails; so does an entry that explains nothing any more. `isGap`: not meant, only not built yet.
 */
import type { Found } from "./compare.ts";
import { AROUND_CONFIG } from "./differences/config.ts";
import { GAPS } from "./differences/gaps.ts";
import { AROUND_INSTRUCTIONS } from "./differences/instructions.ts";
import { MEANT } from "./differences/meant.ts";
import { OF_METHODS } from "./differences/methods.ts";
import { OF_EVERY_MESSAGE } from "./differences/everywhere.ts";
import { AROUND_PARAMS } from "./differences/params.ts";
import { AROUND_TOOLS } from "./differences/tools.ts";

export interface Difference {
  /** Names of scenarios; absent: any. */
  readonly in?: RegExp;
  readonly kind?: Found["kind"];
  readonly message?: RegExp;
  readonly path?: RegExp;
  /** What each side must have said; absent: anything. */
  readonly codex?: unknown;
  readonly heddle?: unknown;
  readonly why: string;
  readonly isGap?: true;
  /** Codex does it this way or that; some runs have nothing to explain. */
  readonly isByChance?: true;
}

export const DIFFERENCES: readonly Difference[] = [
  ...OF_EVERY_MESSAGE,
  ...MEANT,
  ...AROUND_TOOLS,
  ...AROUND_PARAMS,
  ...OF_METHODS,
  ...AROUND_CONFIG,
  ...AROUND_INSTRUCTIONS,
  ...GAPS,
];

export function explains(difference: Difference, found: Found): boolean {
  const word = found.message.replace(/^\w+: /, "");
  return (
    (difference.in?.test(found.scenario) ?? true) &&
    (difference.kind ?? found.kind) === found.kind &&
    (difference.message?.test(word) ?? true) &&
    (difference.path?.test(found.path) ?? true) &&
    (!("codex" in difference) || isSame(difference.codex, found.codex)) &&
    (!("heddle" in difference) || isSame(difference.heddle, found.heddle))
  );
}

function isSame(wanted: unknown, seen: unknown): boolean {
  return JSON.stringify(wanted) === JSON.stringify(seen);
}

/** What is said about an entry in the table of results. */
export function titleOf({ in: where, kind, message, path }: Difference): string {
  const words = [where, message, path].map((pattern) => (pattern === undefined ? "" : plain(pattern)));
  const [scenario = "", what = "", field = ""] = words;
  const parts = [what, field].filter((part) => part !== "").map((part) => `\`${part}\``);
  const verb = kind === undefined || kind === "field" ? "" : ` ${kind}`;
  return `${parts.join(" ")}${verb}${scenario === "" ? "" : ` in ${scenario}`}`.trim();
}

function plain(pattern: RegExp): string {
  return pattern.source.replaceAll(/[\^$\\]/g, "").replaceAll("|", " or ");
}
