/** What a run of the suite leaves behind: results/exec.json and results/clients.json, and the tables in README.md. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DIFFERENCES } from "./differences.ts";
import type { ExecCase } from "./exec-case.ts";
import { RULES } from "./rules.ts";
import type { Verdict } from "./run-cases.ts";

const README = path.join(import.meta.dirname, "README.md");
const MARKS = ["<!-- results -->\n", "<!-- end of results -->"] as const;
const CLIENT_MARKS = ["<!-- clients -->\n", "<!-- end of clients -->"] as const;
type Marks = readonly [string, string];

export interface ClientResult {
  /** The package, and how it is used where there are several ways. */
  readonly client: string;
  readonly version: string;
  readonly program: string;
  readonly passed: number;
  readonly failed: number;
}

export interface Results {
  readonly date: string;
  readonly codex: string;
  readonly exec: readonly Verdict[];
}

export function writeResults(results: Results, cases: readonly ExecCase[]): void {
  const { date, codex, exec } = results;
  writeJson("exec.json", {
    date,
    codex,
    cases: exec.map(({ id, found, problems }) => ({
      id,
      invocations: cases.find((one) => one.id === id)?.runs.length ?? 0,
      outcome: problems.length > 0 ? "failed" : found.length > 0 ? "differs as listed" : "same",
      differs: found.map(({ aspect }) => aspect),
    })),
  });
  writeBetween(README, MARKS, tablesOf(results, cases));
}

export function writeClientResults(clients: readonly ClientResult[]): void {
  writeJson("clients.json", { tests: clients });
  const rows = columns(["Client", "Version", "Over Codex", "Over Heddle"], clientRows(clients));
  writeBetween(README, CLIENT_MARKS, [...rows, ""].join("\n"));
}

function writeJson(name: string, value: unknown): void {
  writeFileSync(path.join(import.meta.dirname, "results", name), `${JSON.stringify(value, undefined, 2)}\n`);
}

export function writeBetween(file: string, [first, last]: Marks, text: string): void {
  const page = readFileSync(file, "utf8");
  const [start, end] = [page.indexOf(first), page.indexOf(last)];
  if (start < 0 || end < start) throw new Error(`${path.basename(file)} has lost its marks`);
  writeFileSync(file, `${page.slice(0, start)}${first}\n${text}\n${page.slice(end)}`);
}

function tablesOf({ date, codex, exec }: Results, cases: readonly ExecCase[]): string {
  const same = exec.filter(({ found }) => found.length === 0).length;
  const invocations = cases.reduce((sum, { runs }) => sum + runs.length, 0);
  const aboutOf = (id: string): string => cases.find((one) => one.id === id)?.about ?? "";
  return [
    `Run on ${date} with Codex ${codex}: ${exec.length} cases with ${invocations} invocations of \`exec\`, ` +
      `of which ${same} cases are the same and ${exec.length - same} differ as listed below.`,
    "",
    "### Differences of every case",
    "",
    ...columns(
      ["What differs", "Why"],
      RULES.map(({ what, why }) => [what, why]),
    ),
    "",
    "### Differences of single cases",
    "",
    ...columns(
      ["Case", "Invocation", "Differs in", "Why"],
      DIFFERENCES.map(({ case: id, found, why }) => [
        `\`${id}\``,
        aboutOf(id),
        found.map(({ aspect }) => aspect).join(", "),
        why,
      ]),
    ),
    "",
  ].join("\n");
}

function clientRows(clients: readonly ClientResult[]): readonly (readonly string[])[] {
  const rows = [...Map.groupBy(clients, ({ client }) => client).entries()];
  return rows.map(([client, both]) => {
    const score = (name: string): string => {
      const found = both.find(({ program }) => program === name);
      return found === undefined ? "" : `${found.passed} of ${found.passed + found.failed}`;
    };
    return [`\`${client}\``, both[0]?.version ?? "", score("codex"), score("heddle")];
  });
}

/** Columns as wide as their widest cell, as the formatter leaves them. */
export function columns(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[], fill = " "): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(" | ")} |`;
  const [first = [], ...rest] = all;
  return [
    line(first),
    line(
      head.map(() => ""),
      "-",
    ),
    ...rest.map((row) => line(row)),
  ];
}
