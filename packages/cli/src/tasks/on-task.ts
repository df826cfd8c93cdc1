/** What every command about one task begins with: its screen, the record, and the task that is named. */
import { exitCodeOf, toHeddleError, type TaskRecord } from "@heddle/protocol";
import { requireTasks, type TaskStore } from "@heddle/runtime/task-store";
import type { ParsedArgs } from "../args.ts";
import { openAnswer, type Answer } from "../print/answer.ts";
import { say } from "../print/screen.ts";
import { SpecError } from "@heddle/tasks";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";

export type OpenedTask = Answer & Pick<TaskStore, "journal" | "tasks"> & { readonly task: TaskRecord };

export async function onTask(
  selector: string,
  args: ParsedArgs,
  env: NodeJS.ProcessEnv,
  run: (opened: OpenedTask) => Promise<number>,
): Promise<number> {
  await using store = await requireTasks(env, selector, say);
  const { journal, tasks } = store;
  return await run({ ...openAnswer(args, env), journal, tasks, task: await tasks.find(selector) });
}

/** A failure of a command about tasks: several lines keep their lines, and a reader of JSON gets it as JSON. */
export async function printFailure(error: unknown, args: ParsedArgs): Promise<number> {
  const { code, message } = toHeddleError(error);
  if (code === "internal") throw error;
  if (args.has("json")) {
    const problems = error instanceof SpecError ? { problems: error.problems } : {};
    await openOutput(process.stdout).write(toLine({ type: "error", code, message, ...problems }));
  }
  for (const line of message.split("\n")) say(line);
  return exitCodeOf(code);
}
