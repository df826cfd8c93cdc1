/** What the suite saw of each agent program: results/runners-NAME.json, and the table of all of them in docs/use/agents.md. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { columns, writeBetween } from "../report.ts";
import { versionOf, type Subject } from "./subject.ts";

const RESULTS = path.join(import.meta.dirname, "..", "results");
const PAGE = path.join(import.meta.dirname, "..", "..", "docs", "use", "agents.md");
const MARKS = ["<!-- runners -->\n", "<!-- end of runners -->"] as const;

type Outcome = "passed" | "failed" | "notDeclared";

interface SubjectResults {
  readonly name: string;
  readonly package: string;
  readonly version: string;
  readonly date: string;
  readonly scenarios: Readonly<Record<string, Outcome>>;
}

/** As Vitest reports it: `describe` is "NAME TOPIC". */
export interface SeenTest {
  readonly ancestorTitles: readonly string[];
  readonly title: string;
  readonly status: string;
}

/** Returns how many scenarios failed. */
export function writeRunnerResults(subjects: readonly Subject[], tests: readonly SeenTest[]): number {
  let failed = 0;
  for (const subject of subjects) {
    const own = tests.filter(({ ancestorTitles: [group = ""] }) => group.startsWith(`${subject.name} `));
    // Files of a run come in any order.
    const seen = own.map((test) => [rowOf(subject, test), outcomeOf(test.status)] as const);
    const scenarios = Object.fromEntries(seen.toSorted(([one], [other]) => (one < other ? -1 : 1)));
    const count = (outcome: Outcome): number => Object.values(scenarios).filter((one) => one === outcome).length;
    failed += count("failed");
    console.log(
      `${subject.name} (${subject.package} ${versionOf(subject)}): ${count("passed")} passed, ${count("failed")} failed, ${count("notDeclared")} need more than it declares`,
    );
    const results: SubjectResults = {
      name: subject.name,
      package: subject.package,
      version: versionOf(subject),
      date: new Date().toISOString().slice(0, 10),
      scenarios,
    };
    const file = path.join(RESULTS, `runners-${subject.name}.json`);
    writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
  }
  writeTable();
  return failed;
}

function rowOf({ name }: Subject, { ancestorTitles: [group = ""], title }: SeenTest): string {
  return `${group.slice(name.length + 1)}: ${title}`;
}

function outcomeOf(status: string): Outcome {
  return status === "passed" ? "passed" : status === "failed" ? "failed" : "notDeclared";
}

const CELLS: Readonly<Record<Outcome, string>> = { passed: "yes", failed: "**failed**", notDeclared: "no" };

function writeTable(): void {
  const files = readdirSync(RESULTS).filter((name) => /^runners-.*\.json$/.test(name));
  const all = files.map((name): SubjectResults => JSON.parse(readFileSync(path.join(RESULTS, name), "utf8")));
  const rows = [...new Set(all.flatMap(({ scenarios }) => Object.keys(scenarios)))].toSorted();
  const head = ["What was asked for", ...all.map(({ name, version }) => `${name} ${version}`)];
  const lines = rows.map((row) => [
    row,
    ...all.map(({ scenarios }) => {
      const outcome = scenarios[row];
      return outcome === undefined ? "" : CELLS[outcome];
    }),
  ]);
  writeBetween(PAGE, MARKS, [...columns(head, lines), ""].join("\n"));
}
