/** What a thread's next turns are wished to run with: changed key by key, kept in the journal, in the words of the doors. */
import { HeddleError, type By } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

type Wishes = Readonly<Record<string, unknown>>;

const MAX_KEYS = 100;
const MAX_CHARS = 64 * 1024;

/** Merges; null removes a key. A running turn is not touched. Answers what stands now. */
export async function changeSettings(
  journal: Journal,
  threadId: string,
  { changes, by }: { readonly changes: Wishes } & By,
): Promise<Wishes> {
  await readWishes(journal, threadId);
  checkSettings(changes);
  if (Object.keys(changes).length > 0) {
    const events = [{ type: "thread.settings-changed", v: 1, changes: { ...changes } }] as const;
    await journal.append({ stream: threadId, author: by, events });
  }
  return readWishes(journal, threadId);
}

export function checkSettings(changes: Wishes): void {
  if (Object.keys(changes).length <= MAX_KEYS && JSON.stringify(changes).length <= MAX_CHARS) return;
  throw new HeddleError("usage.invalid", `settings have at most ${MAX_KEYS} keys and ${MAX_CHARS} characters`);
}

async function readWishes(journal: Journal, threadId: string): Promise<Wishes> {
  const thread = await journal.threads.get(threadId);
  if (thread === undefined) throw new HeddleError("thread.not-found", `no thread ${threadId}`);
  return thread.settings;
}
