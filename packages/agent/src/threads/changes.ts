/** What clients change in a thread outside its turns, each an event: conversation entries, git info, settings, reverts. */
import {
  HeddleError,
  visibleLine,
  type By,
  type ConversationEntry,
  type EventBody,
  type GitInfoChange,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { appendAt } from "./append-at.ts";
import { isKept, readPlan } from "./past.ts";
import { requireThread } from "./threads.ts";

const MAX_ENTRIES = 1_000;
const MAX_ENTRIES_CHARS = 4 * 1024 * 1024;

/**
 * The model sees them with the next request. A call without its result, or the reverse, is refused: no provider takes
 * it.
 */
export async function injectEntries(
  journal: Journal,
  threadId: string,
  { entries, by }: { readonly entries: readonly ConversationEntry[] } & By,
): Promise<void> {
  await requireThread(journal, threadId);
  if (entries.length === 0 || entries.length > MAX_ENTRIES || JSON.stringify(entries).length > MAX_ENTRIES_CHARS) {
    throw new HeddleError(
      "usage.invalid",
      `between 1 and ${MAX_ENTRIES} items of at most 4 MiB can be injected at once`,
    );
  }
  refuseUnpaired(entries);
  const event: EventBody = { type: "context.injected", v: 1, entries: [...entries] };
  await journal.append({ stream: threadId, author: by, events: [event] });
}

function refuseUnpaired(entries: readonly ConversationEntry[]): void {
  const open = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === "assistant") {
      for (const part of entry.parts) if (part.kind === "toolCall") open.add(part.callId);
    }
    if (entry.kind === "toolResult" && !open.delete(entry.callId)) {
      throw new HeddleError("usage.invalid", `the output of call ${entry.callId} has no call before it`);
    }
  }
  const [callId] = open;
  if (callId !== undefined) throw new HeddleError("usage.invalid", `call ${callId} has no output`);
}

const MAX_GIT_CHARS = 4_096;

export async function changeGitInfo(
  journal: Journal,
  threadId: string,
  { gitInfo, by }: { readonly gitInfo: GitInfoChange } & By,
): Promise<void> {
  await requireThread(journal, threadId);
  const values = Object.values(gitInfo);
  if (values.some((value) => typeof value === "string" && (value.trim() === "" || value.length > MAX_GIT_CHARS))) {
    throw new HeddleError("usage.invalid", `a value of gitInfo has 1 to ${MAX_GIT_CHARS} characters; null removes it`);
  }
  const events = [{ type: "thread.metadata-changed", v: 1, gitInfo }] as const;
  await journal.append({ stream: threadId, author: by, events });
}

type Settings = Readonly<Record<string, unknown>>;

const MAX_KEYS = 100;
const MAX_SETTINGS_CHARS = 64 * 1024;

/** Merges; null removes a key. A running turn keeps its settings. Returns the settings after the change. */
export async function changeSettings(
  journal: Journal,
  threadId: string,
  { changes, by }: { readonly changes: Settings } & By,
): Promise<Settings> {
  await requireThread(journal, threadId);
  checkSettings(changes);
  if (Object.keys(changes).length > 0) {
    const events = [{ type: "thread.settings-changed", v: 1, changes: { ...changes } }] as const;
    await journal.append({ stream: threadId, author: by, events });
  }
  return (await requireThread(journal, threadId)).settings;
}

export function checkSettings(changes: Settings): void {
  if (Object.keys(changes).length <= MAX_KEYS && JSON.stringify(changes).length <= MAX_SETTINGS_CHARS) return;
  throw new HeddleError("usage.invalid", `settings have at most ${MAX_KEYS} keys and ${MAX_SETTINGS_CHARS} characters`);
}

export interface RevertThread extends By {
  readonly threadId: string;
  readonly beforeTurnId: string;
}

/**
 * Takes a thread back to before one of its turns; files stay as they are. `turn.active` while a turn runs, `turn.not-found`
 * for a turn that is not in the thread's past.
 */
export async function revertThread(journal: Journal, { threadId, beforeTurnId, by }: RevertThread): Promise<void> {
  await requireThread(journal, threadId);
  await appendAt(journal, threadId, async (expectedVersion) => {
    const open = await journal.threads.lastTurn(threadId);
    if (open?.status === "open") {
      throw new HeddleError("turn.active", `thread ${threadId} is busy with turn ${open.id}; interrupt it first`);
    }
    const turn = await journal.threads.turn(beforeTurnId);
    if (turn === undefined || !isKept(await readPlan(journal, threadId), turn)) {
      throw new HeddleError("turn.not-found", `turn ${visibleLine(beforeTurnId)} is not in thread ${threadId}`);
    }
    const events = [{ type: "thread.reverted", v: 1, beforeTurnId }] as const;
    return journal.append({ stream: threadId, author: by, events, expectedVersion });
  });
}
