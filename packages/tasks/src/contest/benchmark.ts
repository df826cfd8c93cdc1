/**
 * Agents at a folder of tasks, each several times: contests of which nothing comes to a workspace. The same files, agents
 * and repeats are the same benchmark, so that ordering it once more continues one that has not come to its end.
 */
import { createHash } from "node:crypto";
import { canonical, hasEnded, HeddleError, isHeddleError, type TaskRecord } from "@heddle/protocol";
import { MAX_CONTESTANTS, type ContestRow, type TaskAgent, type TaskSpec } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { idOf, type Tasks } from "../open-tasks.ts";
import type { FoundSpec } from "../spec/read-files.ts";
import { nameOf } from "./contestants.ts";
import { contestRows } from "./standings.ts";
import { resultsOf, type AgentResult } from "./statistics.ts";

export interface BenchmarkOrder {
  readonly found: readonly FoundSpec[];
  /** Absent: those of each file. */
  readonly agents: readonly TaskAgent[] | undefined;
  readonly repeat: number;
}

export interface Benchmark {
  /** Of all its contests; `heddle contest show LABEL` shows it. */
  readonly label: string;
  readonly contests: readonly TaskRecord[];
}

/** As many contests one benchmark has. */
const MAX_CONTESTS = 10_000;
/** More ended ones of the same order are deleted first. */
const MAX_RUNS = 1_000;
const LABEL = /^bench-[0-9a-f]{12}-\d+$/;

export function isBenchmark(selector: string): boolean {
  return LABEL.test(selector);
}

/** Of all its files at once, before anything is stored. */
export function benchmarkSpecs({ found, agents, repeat }: BenchmarkOrder): readonly FoundSpec[] {
  if (found.length * repeat > MAX_CONTESTS)
    throw new HeddleError("task.invalid", `these are ${found.length * repeat} contests; order at most ${MAX_CONTESTS}`);
  return found.map((one) => ({ ...one, spec: contestSpec(one, agents) }));
}

function contestSpec({ file, spec }: FoundSpec, given: readonly TaskAgent[] | undefined): TaskSpec {
  const refuse = (what: string): never => {
    throw new HeddleError("task.invalid", `${file}: ${what}`);
  };
  const { schedule, thread, worktree, pick: _, ...rest } = spec;
  const agents = given ?? spec.agents;
  if (agents === undefined) return refuse("it names no agents; give them with --agents codex,claude");
  if (agents.length < 2 || agents.length > MAX_CONTESTANTS)
    return refuse(`a contest has 2 to ${MAX_CONTESTANTS} agents, these are ${agents.length}`);
  const names = agents.map(nameOf);
  if (new Set(names).size < names.length)
    return refuse(`two agents are both called ${names.join(", ")}; give them names`);
  if (spec.checks.length === 0) return refuse("it has no checks, so nothing can be verified; add some");
  if (schedule !== undefined) return refuse("a benchmark begins at once; leave out schedule");
  if (thread !== undefined) return refuse("contestants cannot share a thread; leave out thread");
  const { order, score, ...others } = rest;
  // Ranked only as far as the file says; who is verified counts.
  const ranked = spec.agents === undefined ? {} : { ...(order && { order }), ...(score && { score }) };
  const tree =
    worktree === undefined ? { apply: "never" as const } : { worktree: { ...worktree, merge: "none" as const } };
  const { apply: __, ...bare } = others;
  return { ...bare, ...ranked, ...tree, agents: [...agents], pick: "best", dependsOn: [], abort: false };
}

/** Those of the last order of the same that has not ended, or new ones. Each is made once, by its key. */
export async function orderBenchmark(
  { journal, tasks }: { readonly journal: Journal; readonly tasks: Tasks },
  order: BenchmarkOrder,
): Promise<Benchmark> {
  const specs = benchmarkSpecs(order);
  const hash = createHash("sha256")
    .update(canonical([order.repeat, specs.map(({ file, spec }) => [file, spec])]))
    .digest("hex")
    .slice(0, 12);
  for (let run = 1; run <= MAX_RUNS; run += 1) {
    const label = `bench-${hash}-${run}`;
    const keys = specs.flatMap((_, index) =>
      Array.from({ length: order.repeat }, (__, repeat) => ({ index, repeat, key: `${label}:${index}:${repeat}` })),
    );
    const standing = await Promise.all(keys.map(({ key }) => journal.tasks.get(idOf(key))));
    if (standing.every((task) => task !== undefined && hasEnded(task))) continue;
    const contests: TaskRecord[] = [];
    for (const { index, repeat, key } of keys) {
      const added = await addOne(tasks, { specs, index, repeat, key, label });
      if (added === undefined) break;
      contests.push(added);
    }
    if (contests.length === keys.length) return { label, contests };
  }
  throw new HeddleError("limit.reached", `this benchmark was run ${MAX_RUNS} times; delete some: heddle task delete`);
}

interface One {
  readonly specs: readonly FoundSpec[];
  readonly index: number;
  readonly repeat: number;
  readonly key: string;
  readonly label: string;
}

/** undefined: one of this order was deleted. */
async function addOne(tasks: Tasks, { specs, index, repeat, key, label }: One): Promise<TaskRecord | undefined> {
  const found = specs[index];
  if (found === undefined) throw new TypeError("no such file");
  const { file, spec, sha256 } = found;
  const named = { ...spec, name: `${spec.name} (${repeat + 1})`, labels: [...spec.labels, label] };
  const source = { kind: "cli" as const, ref: file, ...(sha256 === undefined ? {} : { sha256 }) };
  try {
    return await tasks.add({ spec: named, source, key });
  } catch (error) {
    if (isHeddleError(error) && error.code === "store.id-conflict") return undefined;
    throw error;
  }
}

export interface BenchmarkReport {
  readonly label: string;
  readonly agents: readonly AgentResult[];
  readonly contests: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: string;
    readonly rows: readonly ContestRow[];
  }[];
}

const PAGE = 200;

/** From the contests that have the label, in the order in which they were added. */
export async function reportBenchmark(journal: Journal, label: string): Promise<BenchmarkReport> {
  const contests: TaskRecord[] = [];
  for (let after: string | undefined; ;) {
    const page = await journal.tasks.page({ label, limit: PAGE, ...(after === undefined ? {} : { after }) });
    contests.push(...page.filter(({ contestant }) => contestant === undefined));
    after = page.at(-1)?.id;
    if (page.length < PAGE) break;
  }
  if (contests.length === 0)
    throw new HeddleError("task.not-found", `there is no benchmark ${label}; heddle task list shows labels of tasks`);
  const shown = [];
  for (const task of contests.toReversed())
    shown.push({ id: task.id, name: task.spec.name, state: task.state, rows: await contestRows(journal, task) });
  return { label, agents: resultsOf(shown.flatMap(({ rows }) => rows)), contests: shown };
}
