/** How a child thread stands, read from the journal alone, so that every process says the same. */
import type { Journal, ThreadRow } from "@heddle/journal";
import { HeddleError, type ChildState, type StoredEvent } from "@heddle/protocol";
import { readTurn } from "../threads/history.ts";

/** A thread that is not a child of this parent is `missing`, whatever else it is. */
export async function readChild(journal: Journal, parentId: string, threadId: string): Promise<ChildState> {
  const row = await childRow(journal, parentId, threadId);
  return row === undefined ? { threadId, status: "missing" } : stateOf(journal, row);
}

export async function requireChild(journal: Journal, parentId: string, threadId: string): Promise<ThreadRow> {
  const row = await childRow(journal, parentId, threadId);
  if (row === undefined || row.isArchived) {
    const what = row === undefined ? "is not an agent of this thread" : "was closed";
    throw new HeddleError("child.not-found", `${JSON.stringify(threadId.slice(0, 64))} ${what}`);
  }
  return row;
}

async function childRow(journal: Journal, parentId: string, threadId: string): Promise<ThreadRow | undefined> {
  const row = await journal.threads.get(threadId);
  return row?.parent?.threadId === parentId ? row : undefined;
}

export async function stateOf(journal: Journal, { id, isArchived }: ThreadRow): Promise<ChildState> {
  if (isArchived) return { threadId: id, status: "closed" };
  const last = await journal.threads.lastTurn(id);
  if (last === undefined) return { threadId: id, status: "starting" };
  if (last.status === "open") return { threadId: id, status: "running" };
  const message = messageIn(await readTurn(journal, last.id), last.status);
  return { threadId: id, status: last.status, ...(message === undefined ? {} : { message }) };
}

function messageIn(events: readonly StoredEvent[], status: "completed" | "failed" | "interrupted"): string | undefined {
  for (const { body } of events.toReversed()) {
    if (status !== "completed" && body.type === "turn.completed") return body.failure?.message;
    if (body.type !== "item.completed" || body.item.type !== "agentMessage") continue;
    if (body.item.isPartial !== true) return body.item.text;
  }
  return undefined;
}
