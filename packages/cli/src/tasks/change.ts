/** What a user does to tasks: pause, resume, cancel, accept and so on. Each prints the state of the task afterwards. */
import { EXIT, visibleLine, type TaskRecord } from "@heddle/protocol";
import { StallAction } from "@heddle/protocol/tasks";
import { parseDuration, type Tasks } from "@heddle/tasks";
import { requireTasks } from "@heddle/runtime/task-store";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { openAnswer } from "../print/answer.ts";
import { marked, say } from "../print/screen.ts";
import type { Style } from "../print/style.ts";
import { paintState, standing } from "./outcome.ts";
import { RUN_BY } from "./add.ts";
import type { Change } from "./changes.ts";
import { onTask } from "./on-task.ts";
import { reviewLines } from "./work-lines.ts";

/** Several at once; the first that cannot be done ends it, and says which. */
export async function changeTasks(
  verb: Change,
  selectors: readonly string[],
  args: ParsedArgs,
  { env }: CommandContext,
): Promise<number> {
  const [first] = selectors;
  if (first === undefined) throw usage(`write heddle task ${verb} ID; heddle task list shows them`);
  const act = changeOf(verb, args);
  const { isJson, style, print } = openAnswer(args, env);
  await using store = await requireTasks(env, first, say);
  for (const selector of selectors) {
    const { id, spec } = await store.tasks.find(selector);
    const task = await act(store.tasks, id);
    const state = task === undefined ? style.dim("deleted") : stateText(task, style);
    const text = `${marked(`${id}  ${visibleLine(spec.name)}  ${state}`).trimEnd()}\n`;
    await print(task ?? { id, isDeleted: true }, text);
  }
  // A task does nothing by itself after these.
  if ((verb === "resume" || verb === "retry") && !isJson) say(RUN_BY);
  return EXIT.ok;
}

function stateText(task: TaskRecord, style: Style): string {
  return `${paintState(task.state, style)}  ${visibleLine(standing(task))}`;
}

/** `heddle task accept`: what was put to the owner is the work. Shows first what the verdict rests on. */
export async function acceptTask(selector: string, args: ParsedArgs, { env }: CommandContext): Promise<number> {
  return onTask(selector, args, env, async ({ tasks, task: { id, lastCheck }, isJson, style, print }) => {
    const accepted = await tasks.accept(id, args.value("reason"));
    const line = `${id}  ${visibleLine(accepted.spec.name)}  ${stateText(accepted, style)}`.trimEnd();
    await print(accepted, `${[...reviewLines(lastCheck?.review, style), line].join("\n")}\n`);
    if (isJson) return EXIT.ok;
    if (accepted.deliver !== undefined)
      say("accepted; heddle watch, or a running heddle serve, judges it again with these files");
    else say("accepted without verification: the task ends as claimed, because no check proves it");
    return EXIT.ok;
  });
}

/** undefined: the task was deleted. */
type Act = (tasks: Tasks, id: string) => Promise<TaskRecord | undefined>;

/** Options are checked here, before the first task is changed. */
function changeOf(verb: Change, args: ParsedArgs): Act {
  const note = args.value("reason");
  switch (verb) {
    case "pause":
    case "cancel":
    case "complete":
      return (tasks, id) => tasks[verb](id, note);
    case "resume": {
      const more = moreBudget(args.values("more"));
      const input = args.value("input");
      if (input?.trim() === "") throw usage("--input is empty; write what the agent should know");
      return (tasks, id) => tasks.resume(id, more, { input });
    }
    case "retry":
      return (tasks, id) => tasks.retry(id, note, { isFresh: args.has("fresh") });
    case "relieve": {
      const action = StallAction.options.find((known) => known === args.value("action")) ?? "kill-child";
      return (tasks, id) => tasks.relieve(id, action);
    }
    case "archive":
      return (tasks, id) => tasks.archive(id, !args.has("back"));
    case "delete":
      return async (tasks, id) => {
        await tasks.remove(id);
        return undefined;
      };
  }
}

/** `turns=5`, `time=30m`, `tokens=100000`, `cost_usd=2`. */
function moreBudget(given: readonly string[]): Readonly<Record<string, number>> | undefined {
  if (given.length === 0) return undefined;
  const keys = new Map(Object.entries({ turns: "turns", tokens: "tokens", time: "timeMs", cost_usd: "costUsd" }));
  const budget: Record<string, number> = {};
  for (const word of given.flatMap((list) => list.split(","))) {
    const [name = "", value = ""] = word.split("=");
    const key = keys.get(name);
    const number = name === "time" ? parseDuration(value) : Number(value);
    if (key === undefined || number === undefined || !(number > 0))
      throw usage(`--more ${word}: must be one of turns=5, time=30m, tokens=100000, cost_usd=2`);
    budget[key] = number;
  }
  return budget;
}
