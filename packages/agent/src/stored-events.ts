/** Reading a whole stream in pages. */
import type { Journal } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";

const PAGE = 1000;

export async function readStream(journal: Journal, stream: string, after = 0): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (;;) {
    const page = await journal.read({ stream, after: events.at(-1)?.version ?? after, limit: PAGE });
    events.push(...page);
    if (page.length < PAGE) return events;
  }
}
