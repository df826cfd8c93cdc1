/** Threads that are archived, restored or deleted: what runs in them ends, and what lies beside the record goes with it. */
import type { Journal } from "@heddle/journal";
import type { By } from "@heddle/protocol";
import type { ThreadSandboxes } from "../sandboxes/thread-sandboxes.ts";
import type { Serial } from "../turns/serial.ts";
import {
  archiveThread,
  deleteChildren,
  purgeThread,
  removeFiles,
  type ArchiveThread,
  type DeleteThread,
} from "./threads.ts";

export interface EndingThreads {
  readonly journal: Journal;
  readonly home: string;
  readonly starts: Serial;
  readonly sandboxes: Pick<ThreadSandboxes, "leave" | "drop">;
  isWorkedIn(threadId: string): boolean;
}

export function archiveOne(engine: EndingThreads, thread: ArchiveThread & By): Promise<void> {
  const { journal, starts, sandboxes } = engine;
  const { threadId, isArchived } = thread;
  return starts.run(threadId, async () => {
    await archiveThread(journal, thread);
    if (isArchived && !engine.isWorkedIn(threadId)) await sandboxes.leave(threadId);
  });
}

export function deleteOne(engine: EndingThreads, thread: DeleteThread & By): Promise<void> {
  const { journal, home, starts, sandboxes } = engine;
  const { threadId } = thread;
  return starts.run(threadId, async () => {
    await purgeThread(journal, thread);
    await sandboxes.drop(threadId);
    await removeFiles(home, threadId);
    await deleteChildren(journal, threadId, (child) => deleteOne(engine, { ...thread, threadId: child }));
  });
}
