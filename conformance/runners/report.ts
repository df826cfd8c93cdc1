/** What the suite saw of each agent program: results/runners-NAME.json, and the table of all of them in docs/use/agents.md. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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

/** Returns how many scenarios failed. What is not whole is added to what was seen before. */
export function writeRunnerResults(
  subjects: readonly Subject[],
  tests: readonly SeenTest[],
  { isWhole }: { readonly isWhole: boolean },
): number {
  let failed = 0;
  for (const subject of subjects) {
    const file = path.join(RESULTS, `runners-${subject.name}.json`);
    const version = versionOf(subject);
    const before = isWhole ? {} : seenBefore(file, version);
    const own = tests.filter(({ ancestorTitles: [group = ""] }) => group.startsWith(`${subject.name} `));
    // Files of a run come in any order.
    const seen = own.map((test) => [rowOf(subject, test), outcomeOf(test.status)] as const);
    const all = Object.entries({ ...before, ...Object.fromEntries(seen) });
    const scenarios = Object.fromEntries(all.toSorted(([one], [other]) => (one < other ? -1 : 1)));
    const count = (outcome: Outcome): number => Object.values(scenarios).filter((one) => one === outcome).length;
    failed += count("failed");
    console.log(
      `${subject.name} (${subject.package} ${version}): ${count("passed")} passed, ${count("failed")} failed, ${count("notDeclared")} need more than it declares`,
    );
    const results: SubjectResults = {
      name: subject.name,
      package: subject.package,
      version,
      date: new Date().toISOString().slice(0, 10),
      scenarios,
    };
    writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
  }
  writeTable();
  return failed;
}

function seenBefore(file: string, version: string): SubjectResults["scenarios"] {
  if (!existsSync(file)) return {};
  const results: SubjectResults = JSON.parse(readFileSync(file, "utf8"));
  return results.version === version ? results.scenarios : {};
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
