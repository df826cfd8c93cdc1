/**
 * Agents of other tasks that worked in the folder of a task, around it or in it, while it was under way: what they made is
 * neither its beginning nor its work, and no copy tells it apart.
 */
import { hasOwnTree, type StoredEvent, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { WorkReview } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { listedNames } from "../checks/shown.ts";
import { readLog } from "../owner/recorded.ts";
import { tasksBeside } from "./left-before.ts";

const SHOWN = 10;

export async function besideReason(
  { journal, home, task }: { readonly journal: Journal; readonly home: string; readonly task: TaskRecord },
  log: readonly StoredEvent<TaskEventBody>[],
): Promise<WorkReview["reasons"][number] | undefined> {
  if (hasOwnTree(task.spec)) return undefined;
  const prepared = log.findLastIndex(({ body }) => body.type === "task.prepared");
  const since = log[prepared - 1]?.at ?? task.createdAt;
  const ids: string[] = [];
  for (const other of await tasksBeside({ journal, home, task })) {
    const isAtWork = other.holder !== undefined && other.openPrompt !== undefined;
    const hasWorked = async (): Promise<boolean> =>
      other.updatedAt >= since &&
      (await readLog(journal, other.id)).some(({ at, body }) => at >= since && body.type === "task.turn-ended");
    if (isAtWork || (await hasWorked())) ids.push(other.id);
  }
  if (ids.length === 0) return undefined;
  const message = `agents of other tasks worked in the same folder meanwhile, so that what the checks found may be their doing: ${listedNames(ids, SHOWN)}; heddle task diff ${ids[0]} shows what one changed, exclusive: true and folders apart keep tasks apart`;
  return { kind: "beside", message, files: [] };
}
