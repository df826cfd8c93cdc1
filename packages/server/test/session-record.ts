/** What sessions have left on record. */
import { join } from "node:path";
import { examine } from "@heddle/journal/verification";
import type { EventOf, EventType, StoredEvent } from "@heddle/protocol";
import type { ChatWorld } from "./chat-world.ts";

export async function eventsOf(world: ChatWorld, stream: string): Promise<readonly StoredEvent[]> {
  return world.heddle.journal.read({ stream, after: 0, limit: 1000 });
}

export async function bodiesOf<T extends EventType>(world: ChatWorld, stream: string, type: T): Promise<EventOf<T>[]> {
  const isWanted = (body: StoredEvent["body"]): body is EventOf<T> => body.type === type;
  return (await eventsOf(world, stream)).map(({ body }) => body).filter(isWanted);
}

export async function ended(world: ChatWorld, stream: string): Promise<EventOf<"turn.completed">> {
  for await (const { body } of world.heddle.journal.tail({ stream, after: 0, signal: AbortSignal.timeout(60_000) })) {
    if (body.type === "turn.completed") return body;
  }
  throw new Error("the turn has no end");
}

/** What `heddle verify` finds. */
export async function findings(world: ChatWorld, stream: string): Promise<readonly string[]> {
  const found = await examine(world.heddle.journal, { home: join(world.root, "home"), streams: [stream], level: 5 });
  return found.findings.map(({ code, message }) => `${code} ${message}`);
}
