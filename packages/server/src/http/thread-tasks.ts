/** Which task a thread works for. */
import type { Journal } from "@heddle/journal";

const ORIGIN = "task:";

/** The one it was made for, or the newest that continues it. */
export async function taskIdOf(journal: Journal, threadId: string): Promise<string | undefined> {
  const thread = await journal.threads.get(threadId);
  if (thread === undefined) return undefined;
  return taskOfOrigin(thread.origin) ?? (await journal.tasks.ofThread(threadId)).at(-1)?.id;
}

export function taskOfOrigin(origin: string): string | undefined {
  return origin.startsWith(ORIGIN) ? origin.slice(ORIGIN.length) : undefined;
}
