/** `heddle task list`: every task is reachable, a page at a time, newest first. */
import { EXIT, TASK_STATES, visibleLine, type TaskRecord, type TaskState } from "@heddle/protocol";
import { openWorkspace } from "@heddle/runtime/settings";
import { lookAtTasks } from "@heddle/runtime/task-store";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { openAnswer } from "../print/answer.ts";
import { marked, say } from "../print/screen.ts";
import { localTime, type Style } from "../print/style.ts";
import { paintState, standing } from "./outcome.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1000;
const SHOWN_STATES = TASK_STATES.filter((state) => state !== "archived");

export async function listTasks(args: ParsedArgs, { env, cwd }: CommandContext): Promise<number> {
  const limit = Number(args.value("limit") ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw usage(`--limit is a whole number up to ${MAX_LIMIT}`);
  const folder = args.value("cd");
  const label = args.value("label");
  const text = args.value("text");
  const after = args.value("after");
  const filter = {
    states: wantedStates(args),
    ...(folder === undefined ? {} : { workspace: await openWorkspace(folder, cwd) }),
    ...(label === undefined ? {} : { label }),
    ...(text === undefined ? {} : { text }),
  };
  const { out, isJson, style, print } = openAnswer(args, env);
  await using store = await lookAtTasks(env, say);
  const from = after === undefined ? undefined : await store?.tasks.find(after);
  const found =
    (await store?.tasks.page({ ...filter, ...(from === undefined ? {} : { after: from.id }), limit: limit + 1 })) ?? [];
  const rows = found.slice(0, limit);
  for (const row of rows) await print(row, `${rowLine(row, style)}\n`);
  if (isJson) return EXIT.ok;
  if (rows.length === 0)
    await out.write(isFiltered(args) ? "no matching tasks\n" : "no tasks yet; heddle task init makes a first one\n");
  const last = rows.at(-1);
  if (found.length > limit && last !== undefined) await out.write(`… more: heddle task list --after ${last.id}\n`);
  return EXIT.ok;
}

function isFiltered(args: ParsedArgs): boolean {
  return ["state", "label", "text", "cd", "after"].some((name) => args.has(name));
}

function wantedStates(args: ParsedArgs): readonly TaskState[] {
  const named = args.values("state").flatMap((states) => states.split(","));
  if (named.length === 0) return args.has("all") ? TASK_STATES : SHOWN_STATES;
  return named.map((word) => {
    const state = TASK_STATES.find((known) => known === word);
    if (state === undefined) throw usage(`--state ${word}: must be one of ${TASK_STATES.join(", ")}`);
    return state;
  });
}

function rowLine(task: TaskRecord, style: Style): string {
  const when = localTime(task.updatedAt);
  const { steps } = task.spec;
  const progress = steps.length === 0 ? "" : ` ${task.stepsDone.length}/${steps.length}`;
  const why = standing(task);
  const more = why === "" ? "" : `  ${style.dim(visibleLine(why))}`;
  const pad = " ".repeat(Math.max(0, 9 - task.state.length));
  const state = `${paintState(task.state, style)}${pad}${progress}`;
  return marked(`${task.id}  ${when}  ${state}  ${visibleLine(task.spec.name)}${more}`);
}
