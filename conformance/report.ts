/** What a run of the suite leaves behind: results/exec.json and results/clients.json, and the tables in README.md. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DIFFERENCES } from "./differences.ts";
import type { ExecCase } from "./exec-case.ts";
import { RULES } from "./rules.ts";
import type { Verdict } from "./run-cases.ts";

const README = path.join(import.meta.dirname, "README.md");
const MARKS = ["<!-- results -->\n", "<!-- end of results -->"] as const;

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
  readonly clients: readonly ClientResult[];
}

export function writeResults(results: Results, cases: readonly ExecCase[]): void {
  const { date, codex, exec, clients } = results;
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
  writeJson("clients.json", { date, tests: clients });
  writeFileSync(README, withTables(readFileSync(README, "utf8"), tablesOf(results, cases)));
}

function writeJson(name: string, value: unknown): void {
  writeFileSync(path.join(import.meta.dirname, "results", name), `${JSON.stringify(value, undefined, 2)}\n`);
}

function withTables(readme: string, tables: string): string {
  const [start, end] = MARKS.map((mark) => readme.indexOf(mark));
  if (start === undefined || end === undefined || start < 0 || end < start)
    throw new Error("README.md has lost its marks");
  return `${readme.slice(0, start)}${MARKS[0]}\n${tables}\n${readme.slice(end)}`;
}

function tablesOf({ date, codex, exec, clients }: Results, cases: readonly ExecCase[]): string {
  const same = exec.filter(({ found }) => found.length === 0).length;
  const invocations = cases.reduce((sum, { runs }) => sum + runs.length, 0);
  const aboutOf = (id: string): string => cases.find((one) => one.id === id)?.about ?? "";
  return [
    `Run on ${date} with Codex ${codex}: ${exec.length} cases with ${invocations} invocations of \`exec\`, ` +
      `of which ${same} cases are the same and ${exec.length - same} differ as listed below.`,
    "",
    "### Clients",
    "",
    ...table(["Client", "Version", "Over Codex", "Over Heddle"], clientRows(clients)),
    "",
    "### Differences of every case",
    "",
    ...table(
      ["What differs", "Why"],
      RULES.map(({ what, why }) => [what, why]),
    ),
    "",
    "### Differences of single cases",
    "",
    ...table(
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
function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
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
