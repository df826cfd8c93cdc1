/** How far a reader of the journal has come, kept in the journal (projection `sinks`). */
import type { Journal } from "@heddle/journal";
import { sinkStream } from "./sink.ts";

export async function storeRead(journal: Journal, sink: string, position: number): Promise<void> {
  await journal.append({
    stream: sinkStream(sink),
    author: "system",
    durability: "relaxed",
    events: [{ type: "notification.read", v: 1, sink, position }],
  });
}
