/**
 * A task goes on, is accepted or is tried again only when no undo is under way in its folder, and when the record says that
 * one was carried out, by whomever: otherwise its work would be judged, or gone on with, while it is taken away.
 */
import { existsSync } from "node:fs";
import {
  hasOwnTree,
  isHeddleError,
  readAuthor,
  UNNAMED,
  type By,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { roomsOf } from "../judge/task-rooms.ts";
import { changeTask, existing } from "../queue/change.ts";

export interface Store {
  readonly journal: Journal;
  readonly home: string | undefined;
}

/** Appends what is decided while nobody puts anything into the folder of the task. Where nothing was kept nothing is loaded. */
export async function changeSettled(
  { journal, home, by }: Store & By,
  taskId: string,
  decide: (task: TaskRecord) => readonly TaskEventBody[],
): Promise<TaskRecord> {
  const change = (): Promise<TaskRecord> => changeTask(journal, taskId, { author: by, decide });
  const { spec } = await existing(journal, taskId);
  if (home === undefined || hasOwnTree(spec) || !existsSync(roomsOf(home, taskId))) return await change();
  const { claimFolder } = await import("../tree/put-back.ts");
  const { signal } = new AbortController();
  await using _claim = await claimFolder(spec.workspace, { dir: roomsOf(home, taskId), signal });
  await recordUndone({ journal, home }, taskId);
  return await change();
}

/** Of an undo whose process died before the record said so. */
export async function recordUndone(
  { journal, home }: Store & { readonly home: string },
  taskId: string,
): Promise<void> {
  const { readUndone, removeUndone } = await import("../tree/put-intent.ts");
  const dir = roomsOf(home, taskId);
  const undone = readUndone(dir);
  if (undone === undefined) return;
  try {
    await changeTask(journal, taskId, {
      author: readAuthor(undone.by) ?? UNNAMED,
      // Whatever happened to the task since then was decided by somebody who knew, or it says so already.
      decide: ({ version }) => (version === undone.version ? [{ type: "task.undone", v: 1, files: undone.files }] : []),
    });
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "task.not-found") throw error;
  }
  removeUndone(dir);
}
