/** The folder a thread works in. */
import { HeddleError } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { resumedFrom } from "./resumed.ts";

export async function workspaceOf(journal: Journal, threadId: string): Promise<string> {
  const thread = await journal.threads.get(threadId);
  if (thread === undefined) throw new HeddleError("thread.not-found", `no thread ${threadId}`);
  // A damaged past must not be carried on: name it before anything new is written behind it.
  for (const { stream, after } of await resumedFrom(journal, threadId)) {
    const damage = await journal.prove(stream, after);
    if (damage !== undefined) throw new HeddleError("store.damaged", damage.message);
  }
  return thread.workspace;
}
