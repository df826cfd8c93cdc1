/**
 * Agents of other tasks that worked in the folder of a task, around it or in it, while it was under way: what they made is
 * neither its beginning nor its work, and no copy tells it apart.
 */
import { hasOwnTree, type StoredEvent, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { listedNames } from "../checks/shown.ts";
import { tasksBeside } from "./left-before.ts";
import { reasonOf, type Reason } from "./pick.ts";

const SHOWN = 10;

export async function besideReason({
  journal,
  home,
  task,
}: {
  readonly journal: Journal;
  readonly home: string;
  readonly task: TaskRecord;
}): Promise<Reason | undefined> {
  if (hasOwnTree(task.spec)) return undefined;
  const newest = async (stream: string, kind: "task.prepared" | "task.turn-ended"): Promise<StoredEvent | undefined> =>
    (await journal.marks.events({ stream, kinds: [kind], name: "", newest: 1 }))[0];
  const { version = 1 } = (await newest(task.id, "task.prepared")) ?? {};
  const [before] = await journal.read({ stream: task.id, after: Math.max(0, version - 2), limit: 1 });
  const since = before?.at ?? task.createdAt;
  const ids: string[] = [];
  for (const other of await tasksBeside({ journal, home, task })) {
    const isAtWork = other.holder !== undefined && other.openPrompt !== undefined;
    const hasWorked = async (): Promise<boolean> =>
      other.updatedAt >= since && ((await newest(other.id, "task.turn-ended"))?.at ?? 0) >= since;
    if (isAtWork || (await hasWorked())) ids.push(other.id);
  }
  if (ids.length === 0) return undefined;
  const message = `agents of other tasks worked in the same folder meanwhile, so that what the checks found may be their doing: ${listedNames(ids, SHOWN)}; heddle task diff ${ids[0]} shows what one changed, exclusive: true and folders apart keep tasks apart`;
  return reasonOf("beside", message);
}
