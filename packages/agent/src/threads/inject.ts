/** Words that a client puts into the conversation outside any turn; the model hears them with the next request. */
import { HeddleError, type By, type ConversationEntry, type EventBody } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { requireThread } from "./threads.ts";

const MAX_ENTRIES = 1_000;
const MAX_CHARS = 4 * 1024 * 1024;

/** Durable when it resolves. A call without its result, or a result without its call, is refused: no provider takes them. */
export async function injectEntries(
  journal: Journal,
  threadId: string,
  { entries, by }: { readonly entries: readonly ConversationEntry[] } & By,
): Promise<void> {
  await requireThread(journal, threadId);
  if (entries.length === 0 || entries.length > MAX_ENTRIES || JSON.stringify(entries).length > MAX_CHARS) {
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
