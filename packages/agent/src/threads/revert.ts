/** Takes a thread back to before one of its turns. Nothing is rewritten: an event says where its past ends from here on. */
import { HeddleError, isHeddleError, visibleLine, type By } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { isKept, readPlan } from "./past.ts";
import { requireThread } from "./threads.ts";

export interface RevertThread extends By {
  readonly threadId: string;
  readonly beforeTurnId: string;
}

const MAX_TRIES = 50;

/** `turn.active` while a turn runs, `turn.not-found` for a turn that is not in the thread's past. Files stay as they are. */
export async function revertThread(journal: Journal, { threadId, beforeTurnId, by }: RevertThread): Promise<void> {
  await requireThread(journal, threadId);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const expectedVersion = await journal.version(threadId);
    const open = await journal.threads.lastTurn(threadId);
    if (open?.status === "open") {
      throw new HeddleError("turn.active", `thread ${threadId} is busy with turn ${open.id}; interrupt it first`);
    }
    const turn = await journal.threads.turn(beforeTurnId);
    if (turn === undefined || !isKept(await readPlan(journal, threadId), turn)) {
      throw new HeddleError("turn.not-found", `turn ${visibleLine(beforeTurnId)} is not in thread ${threadId}`);
    }
    try {
      const events = [{ type: "thread.reverted", v: 1, beforeTurnId }] as const;
      await journal.append({ stream: threadId, author: by, events, expectedVersion });
      return;
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "store.version-conflict") throw error;
    }
  }
  throw new HeddleError("store.busy", `thread ${threadId} is being changed by another process; try again`);
}
