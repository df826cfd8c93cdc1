/** `heddle contest`: how a contest or a benchmark stands, and running a benchmark. */
import { EXIT, exitCodeOf, HeddleError, OWNER, type TaskRecord } from "@heddle/protocol";
import type { TaskAgent } from "@heddle/protocol/tasks";
import {
  benchmarkSpecs,
  contestRows,
  isBenchmark,
  openTasks,
  orderBenchmark,
  orderOf,
  pickOf,
  reportBenchmark,
  type BenchmarkReport,
} from "@heddle/tasks";
import { requireTasks } from "@heddle/runtime/task-store";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { openAnswer } from "../print/answer.ts";
import { toLine } from "../print/jsonl.ts";
import { say } from "../print/screen.ts";
import { refuseChanged } from "./add.ts";
import { benchmarkLines, contestLines } from "./contest-lines.ts";
import { readTasks } from "./read-tasks.ts";
import { watchTasks } from "./watch-tasks.ts";

export async function showContest(selector: string, args: ParsedArgs, { env }: CommandContext): Promise<number> {
  await using store = await requireTasks(env, selector, say);
  const { journal, tasks } = store;
  const { print, style } = openAnswer(args, env);
  if (isBenchmark(selector)) {
    const report = await reportBenchmark(journal, selector);
    await print(report, `${benchmarkLines(report, style).join("\n")}\n`);
    return EXIT.ok;
  }
  const named = await tasks.find(selector);
  const task =
    named.contestant === undefined || named.parentId === undefined ? named : await tasks.find(named.parentId);
  if (task.spec.agents === undefined)
    throw new HeddleError("task.illegal", `${task.id} is not a contest: it has no agents; heddle task show ${task.id}`);
  const rows = await contestRows(journal, task);
  await print(shownContest(task, rows), `${contestLines(task, rows, style).join("\n")}\n`);
  return EXIT.ok;
}

function shownContest(task: TaskRecord, rows: Awaited<ReturnType<typeof contestRows>>) {
  const { id, spec, state, contest, merged } = task;
  const { picked, generation = 0, hasEnded = false } = contest ?? {};
  const pick = pickOf(spec);
  return {
    id,
    name: spec.name,
    state,
    pick,
    ...(pick === "best" ? { order: orderOf(spec) } : {}),
    generation,
    hasEnded,
    ...(picked === undefined ? {} : { picked }),
    ...(merged === undefined ? {} : { merged }),
    rows,
  };
}

const MAX_REPEAT = 100;

export async function runContests(
  files: readonly string[],
  args: ParsedArgs,
  context: CommandContext,
): Promise<number> {
  const repeat = Number(args.value("repeat") ?? 1);
  if (!Number.isInteger(repeat) || repeat < 1 || repeat > MAX_REPEAT)
    throw usage(`--repeat is a whole number up to ${MAX_REPEAT}`);
  const agents = agentsOf(args.value("agents"));
  let label = "";
  return await watchTasks({
    file: undefined,
    args,
    context,
    isOnce: true,
    isAlone: true,
    batch: {
      async read(config) {
        const all = await Promise.all(files.map((file) => readTasks(file, config, context)));
        const found = all.flatMap((one) => one.found);
        return { found: benchmarkSpecs({ found, agents, repeat }), warnings: all.flatMap(({ warnings }) => warnings) };
      },
      async add({ journal, home }, found) {
        if (!args.has("accept-spec")) await refuseChanged({ journal, home }, found);
        const tasks = openTasks({ journal, home }).as(OWNER);
        const ordered = await orderBenchmark({ journal, tasks }, { found, agents, repeat });
        label = ordered.label;
        say(`${label}: ${ordered.contests.length} contests; the same command continues it, nothing of it is applied`);
        return ordered.contests;
      },
      async print(journal, { out, style, isStopped }) {
        const report = await reportBenchmark(journal, label);
        const text = `${benchmarkLines(report, style).join("\n")}\n`;
        await out.write(args.has("json") ? toLine({ ...report, isStopped }) : text);
        return isComplete(report) ? EXIT.ok : exitCodeOf("task.unverified");
      },
    },
  });
}

/** Agents that fail are what is found out; a run that has not come to its end is not. */
function isComplete({ agents }: BenchmarkReport): boolean {
  return agents.length > 0 && agents.every(({ open }) => open === 0);
}

/** `codex,claude,embedded:gpt-5`: runners, each with a model where one is named. */
export function agentsOf(text: string | undefined): readonly TaskAgent[] | undefined {
  if (text === undefined) return undefined;
  return text.split(",").map((word) => {
    const [, runner, model] = /^([^:\s]+)(?::(\S+))?$/.exec(word.trim()) ?? [];
    if (runner === undefined) throw usage(`--agents ${text}: write runners with commas, such as codex,embedded:gpt-5`);
    return { runner, ...(model === undefined ? {} : { model }) };
  });
}
