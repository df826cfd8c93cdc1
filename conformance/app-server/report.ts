/** What a run of the scenarios leaves behind: results/app-server.json and a table in README.md of this folder's parent. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DIFFERENCES, titleOf, type Difference } from "./differences.ts";
import type { Verdict } from "./judge.ts";

const CONFORMANCE = path.join(import.meta.dirname, "..");
const MARKS = ["<!-- app-server -->\n", "<!-- end of app-server -->"] as const;

export interface AppResults {
  readonly verdicts: readonly Verdict[];
  /** Messages held to the schema, and how many kinds of them. */
  readonly checked: number;
  readonly kinds: number;
}

export function writeAppResults({ verdicts, checked, kinds }: AppResults): void {
  const scenarios = verdicts.map(({ id, compared, same, explained, problems }) => ({
    id,
    compared,
    same,
    differs: explained.map(titleOf),
    failed: problems.length,
  }));
  const sum = (count: (verdict: Verdict) => number): number =>
    verdicts.reduce((total, verdict) => total + count(verdict), 0);
  const totals = { scenarios: verdicts.length, compared: sum((one) => one.compared), same: sum((one) => one.same) };
  const schema = { messages: checked, kinds };
  const json = JSON.stringify({ ...totals, schema, results: scenarios }, undefined, 2);
  writeFileSync(path.join(CONFORMANCE, "results", "app-server.json"), `${json}\n`);
  const words = [
    `${totals.scenarios} scenarios, ${totals.compared} messages compared, of which ${totals.same} are the same but for ` +
      `fields that Heddle adds. ${checked} messages of ${kinds} kinds fit the schema that Codex generates.`,
    "",
    ...section(
      "Differences of `app-server` that are meant",
      DIFFERENCES.filter(({ isGap }) => isGap !== true),
    ),
    "",
    ...section(
      "Gaps of `app-server`",
      DIFFERENCES.filter(({ isGap }) => isGap === true),
    ),
    "",
  ];
  const readme = path.join(CONFORMANCE, "README.md");
  writeFileSync(readme, withWords(readFileSync(readme, "utf8"), words.join("\n")));
}

function section(title: string, differences: readonly Difference[]): readonly string[] {
  const byWhy = Map.groupBy(differences, ({ why }) => why);
  return [
    `### ${title}`,
    "",
    ...[...byWhy].map(
      ([why, entries]) => `- ${[...new Set(entries.map(titleOf))].filter(Boolean).join(", ")}: ${why}.`,
    ),
  ];
}

function withWords(readme: string, words: string): string {
  const [start, end] = MARKS.map((mark) => readme.indexOf(mark));
  if (start === undefined || end === undefined || start < 0 || end < start)
    throw new Error("README.md has lost its marks");
  return `${readme.slice(0, start)}${MARKS[0]}\n${words}\n${readme.slice(end)}`;
}
