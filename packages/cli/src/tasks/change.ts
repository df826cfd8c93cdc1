/** What a user does to tasks: pause, resume, cancel, retry, relieve, complete, archive, delete. Each answers with how the task stands then. */
import { EXIT, HeddleError, visibleLine, type TaskRecord } from "@heddle/protocol";
import { StallAction } from "@heddle/protocol/tasks";
import { parseDuration, type Tasks } from "@heddle/tasks";
import { requireTasks } from "@heddle/runtime/task-store";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { marked, openScreen, say } from "../print/screen.ts";
import { styleFor } from "../print/style.ts";
import { paintState, standing } from "./outcome.ts";
import { CARRIED_OUT } from "./add.ts";

export const CHANGES = ["pause", "resume", "cancel", "retry", "relieve", "complete", "archive", "delete"] as const;
export type Change = (typeof CHANGES)[number];

/** Several at once; the first that cannot be done ends it, and says which. */
export async function changeTasks(
  verb: Change,
  selectors: readonly string[],
  args: ParsedArgs,
  { env }: CommandContext,
): Promise<number> {
  const [first] = selectors;
  if (first === undefined) throw usage(`write heddle task ${verb} ID; heddle task list shows them`);
  const action = StallAction.options.find((known) => known === args.value("action"));
  const more = verb === "resume" ? moreBudget(args.values("more")) : undefined;
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const style = styleFor("auto", out.isTerminal, env);
  await using store = await requireTasks(env, first, say);
  for (const selector of selectors) {
    const { id, spec } = await store.tasks.find(selector);
    const task = await change(store.tasks, id, {
      verb,
      note: args.value("reason"),
      isBack: args.has("back"),
      more,
      action,
      isFresh: args.has("fresh"),
    });
    if (args.has("json")) await out.write(toLine(task ?? { id, isDeleted: true }));
    else {
      const state =
        task === undefined ? style.dim("deleted") : `${paintState(task.state, style)}  ${visibleLine(standing(task))}`;
      await out.write(`${marked(`${id}  ${visibleLine(spec.name)}  ${state}`).trimEnd()}\n`);
    }
  }
  if (BRINGS_WORK.has(verb) && !args.has("json")) say(CARRIED_OUT);
  return EXIT.ok;
}

/** A task does nothing by itself after these: somebody has to work on it. */
const BRINGS_WORK: ReadonlySet<Change> = new Set(["resume", "retry"]);

interface Wish {
  readonly verb: Change;
  readonly note: string | undefined;
  readonly isBack: boolean;
  readonly more: Readonly<Record<string, number>> | undefined;
  readonly action: StallAction | undefined;
  readonly isFresh: boolean;
}

async function change(
  tasks: Tasks,
  id: string,
  { verb, note, isBack, more, action, isFresh }: Wish,
): Promise<TaskRecord | undefined> {
  switch (verb) {
    case "pause":
      return tasks.pause(id, note);
    case "resume":
      return tasks.resume(id, more);
    case "cancel":
      return tasks.cancel(id, note);
    case "retry":
      return tasks.retry(id, note, { isFresh });
    case "relieve":
      return tasks.relieve(id, action ?? "kill-child");
    case "complete":
      return tasks.complete(id, note);
    case "archive":
      return tasks.archive(id, !isBack);
    case "delete":
      await tasks.remove(id);
      return undefined;
  }
}

/** `turns=5`, `time=30m`, `tokens=100000`, `cost_usd=2`. */
function moreBudget(words: readonly string[]): Readonly<Record<string, number>> | undefined {
  if (words.length === 0) return undefined;
  const names: Readonly<Record<string, string>> = {
    turns: "turns",
    tokens: "tokens",
    time: "timeMs",
    cost_usd: "costUsd",
  };
  return Object.fromEntries(
    words
      .flatMap((word) => word.split(","))
      .map((word) => {
        const [name = "", value = ""] = word.split("=");
        const key = Object.hasOwn(names, name) ? names[name] : undefined;
        const number = name === "time" ? parseDuration(value) : Number(value);
        if (key === undefined || number === undefined || !(number > 0))
          throw new HeddleError(
            "usage.invalid",
            `--more ${word}: must be one of turns=5, time=30m, tokens=100000, cost_usd=2`,
          );
        return [key, number];
      }),
  );
}
