/** What every command about one task begins with: its screen, the record, and the task that is named. */
import type { TaskRecord } from "@heddle/protocol";
import { requireTasks, type TaskStore } from "@heddle/runtime/task-store";
import type { ParsedArgs } from "../args.ts";
import { openAnswer, type Answer } from "../print/answer.ts";
import { say } from "../print/screen.ts";

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
