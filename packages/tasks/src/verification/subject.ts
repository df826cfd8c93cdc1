/** What a verification is about: all of the record, a thread, or a task with the threads of its attempts. */
import { findThread } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { HeddleError, isHeddleError, OWNER, type TaskRecord } from "@heddle/protocol";
import { openTasks, type Tasks } from "../open-tasks.ts";

export type Subject =
  | { readonly kind: "all" }
  | { readonly kind: "thread"; readonly streams: readonly string[] }
  | { readonly kind: "task"; readonly streams: readonly string[]; readonly task: TaskRecord; readonly tasks: Tasks };

export async function findSubject(journal: Journal, home: string, selector: string | undefined): Promise<Subject> {
  if (selector === undefined) return { kind: "all" };
  if (selector.startsWith("task_")) return await taskSubject(journal, home, selector);
  try {
    return { kind: "thread", streams: [(await findThread(journal, selector)).id] };
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "thread.not-found") throw error;
    return await taskSubject(journal, home, selector).catch((other: unknown) => {
      if (!isHeddleError(other) || other.code !== "task.not-found") throw other;
      throw new HeddleError("thread.not-found", `${error.message}, and no such task`, { cause: error });
    });
  }
}

async function taskSubject(journal: Journal, home: string, selector: string): Promise<Subject> {
  const tasks = openTasks({ journal, home }).as(OWNER);
  const task = await tasks.find(selector);
  const prepared = await journal.marks.events({ stream: task.id, kinds: ["task.prepared"] });
  const threads = prepared.flatMap(({ body }) => (body.type === "task.prepared" ? [body.threadId] : []));
  return { kind: "task", streams: [task.id, ...new Set(threads)], task, tasks };
}
