/**
 * An append before it is stored: redacted, put in canonical form and hashed outside any lock, then chained to the head
 * of its stream inside it. Long ones take turns with everything else, see `preparing.ts`.
 */
import { canonical, HeddleError, isUser, newEventId, upcast, type EventBody, type StoredEvent } from "@heddle/protocol";
import type { Append } from "../journal.ts";
import type { Redactor } from "../redaction/redact.ts";
import { measured } from "./breathe.ts";
import { genesisOf, hashOf, sha256 } from "./chain.ts";
import { atOnce, type Steps } from "./steps.ts";

export interface PreparedAppend {
  readonly append: Append;
  readonly bodies: readonly PreparedBody[];
  readonly contentHash: string;
  readonly durability: "full" | "relaxed";
  /** Of the stored bodies. */
  readonly chars: number;
  readonly endsTurn: boolean;
}

interface PreparedBody {
  readonly body: EventBody;
  readonly stored: string;
  readonly hash: string;
}

export function prepare(append: Append, redactor: Redactor): PreparedAppend {
  return atOnce(prepareInSteps(append, redactor));
}

export function* prepareInSteps(append: Append, redactor: Redactor): Steps<PreparedAppend> {
  const bodies: PreparedBody[] = [];
  for (const event of append.events) {
    bodies.push(yield* prepareBody(event, redactor));
    yield;
  }
  const { stream } = append;
  // The same content from another user under the same key is the same act, and so is a resend of what an older Heddle stored.
  const author = isUser(append.author) ? "user" : append.author;
  const contentHash = sha256(canonical({ stream, author, bodies: bodies.map((body) => body.hash) }));
  const chars = bodies.reduce((sum, { stored }) => sum + stored.length, 0);
  const endsTurn = append.events.some((event) => event.type === "turn.completed");
  return { append, bodies, contentHash, durability: append.durability ?? "full", chars, endsTurn };
}

function* prepareBody(event: EventBody, redactor: Redactor): Steps<PreparedBody> {
  const given = canonical(event);
  yield;
  const redacted = yield* redactor.bodyInSteps(event, given);
  yield;
  const stored = redacted === event ? given : canonical(redacted);
  yield;
  const hash = sha256(stored);
  yield;
  // Read back from the text, so that the caller sees what every later reader sees, to the order of its keys.
  return { body: measured(upcast(JSON.parse(stored)), stored.length), stored, hash };
}

export interface Head {
  readonly version: number;
  readonly hash: string;
  readonly at: number;
  readonly type: string;
}

export function emptyHead(stream: string): Head {
  return { version: 0, hash: genesisOf(stream), at: 0, type: "" };
}

/** An event without its position, and its stored text. */
export interface ChainedEvent {
  readonly event: Omit<StoredEvent, "position">;
  readonly stored: string;
  readonly bodyHash: string;
  readonly prevHash: string;
}

/** Chains an append to the head of its stream, or throws why it is refused. The same for every store. */
export function chain({ append, bodies }: PreparedAppend, head: Head, now: number): ChainedEvent[] {
  const { stream, author, expectedVersion } = append;
  refuseDeleted(stream, head);
  if (expectedVersion !== undefined && expectedVersion !== head.version) {
    const message = `${stream} is at version ${head.version}, not ${expectedVersion}`;
    const details = { stream, expected: expectedVersion, actual: head.version };
    throw new HeddleError("store.version-conflict", message, { details });
  }
  let { version, hash: prevHash } = head;
  // The wall clock may jump back; time within a stream does not.
  const at = Math.max(Math.trunc(now), head.at);
  return bodies.map(({ body, stored, hash: bodyHash }) => {
    version += 1;
    const id = newEventId();
    const { type, v } = body;
    const hash = hashOf({ id, stream, version, at, author, type, v, bodyHash, prevHash });
    const chained = { event: { stream, version, id, at, author, body, hash }, stored, bodyHash, prevHash };
    prevHash = hash;
    return chained;
  });
}

/** Other streams this append depends on: nothing new may have its past in a deleted thread. */
export function parentsOf({ events }: Append): readonly string[] {
  return events.flatMap((body) =>
    body.type === "thread.created" && body.forkedFrom !== undefined ? [body.forkedFrom.threadId] : [],
  );
}

export function refuseDeleted(threadId: string, { type }: Pick<Head, "type">): void {
  if (type !== "thread.deleted") return;
  throw new HeddleError("thread.not-found", `thread ${threadId} was deleted`, { details: { threadId } });
}

export function refuseOtherContent(key: string, stream: string): never {
  const details = { key, stream };
  throw new HeddleError("store.id-conflict", `the key ${key} was used before with other content`, { details });
}
