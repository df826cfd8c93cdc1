/** Holds what was seen against what Codex did, and against the list of differences. */
import { compareSeen, type Found } from "./compare.ts";
import { DIFFERENCES, explains, titleOf, type Difference } from "./differences.ts";
import type { ScenarioSeen } from "./play.ts";
import type { Scenario } from "./scenario.ts";

export interface Verdict {
  readonly id: string;
  /** Messages that have a counterpart, and how many of those differ at most by fields that Heddle adds. */
  readonly compared: number;
  readonly same: number;
  readonly found: readonly Found[];
  /** Entries that explain what was found. */
  readonly explained: readonly Difference[];
  /** Differences that nothing explains, in words. */
  readonly problems: readonly string[];
}

/** Codex loses the first moments of a command's output; what it sends of the rest is chance. */
const BY_CHANCE = ["item/commandExecution/outputDelta"];

export function judge(
  scenario: Scenario,
  sides: { readonly codex: ScenarioSeen; readonly heddle: ScenarioSeen },
): Verdict {
  const { found, compared, same } = compareSeen(sides.codex, sides.heddle, [
    ...BY_CHANCE,
    ...(scenario.unsteady ?? []),
  ]);
  const explained = new Set<Difference>();
  const problems: string[] = [];
  for (const difference of found) {
    const entry = DIFFERENCES.find((candidate) => explains(candidate, difference));
    if (entry === undefined) problems.push(inWords(difference));
    else explained.add(entry);
  }
  return { id: scenario.id, compared, same, found, explained: [...explained], problems };
}

/** Entries that explain nothing in any of these. */
export function leftOver(verdicts: readonly Verdict[]): readonly string[] {
  const used = new Set(verdicts.flatMap(({ explained }) => explained));
  return DIFFERENCES.filter((entry) => entry.isByChance !== true && !used.has(entry)).map(
    (entry) => `no longer differs; remove the entry: ${titleOf(entry)} (${entry.why})`,
  );
}

const MAX_SHOWN_CHARS = 300;

function inWords({ kind, message, path, codex, heddle }: Found): string {
  const [theirs, ours] = [codex, heddle].map((value) => (JSON.stringify(value) ?? "nothing").slice(0, MAX_SHOWN_CHARS));
  const what = kind === "field" ? `${path} differs` : kind;
  return `${message}: ${what}, which is not listed\n    codex   ${theirs}\n    heddle  ${ours}`;
}
