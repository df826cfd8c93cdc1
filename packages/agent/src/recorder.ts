/**
 * The pen of a running turn. Appends in order, knows which items are open, keeps what they have streamed (a checkpoint at
 * most once a second, capped), and at the end completes whatever was left started. Deltas and stored text agree, because
 * both pass the same redaction.
 */
import type { Author, EventBody, EventOf, Item, ItemDelta } from "@heddle/protocol";
import { createStreamRedactor, type Journal, type StreamRedactor } from "@heddle/journal";
import type { Live } from "./live.ts";
import { brokenOff, unknownOutcome } from "./recover.ts";

/** Acknowledged facts and everything that guards a side effect: on disk before anyone goes on. */
const NEEDS_SYNC: ReadonlySet<EventBody["type"]> = new Set([
  "turn.started",
  "tool.intended",
  "tool.settled",
  "path.violated",
  "turn.completed",
]);

const CHECKPOINT_EVERY_MS = 1000;
/** What is kept of a running item: a message fits whole; of a command's output the spill file has the rest. */
const MAX_KEPT_CHARS = { text: 1024 * 1024, output: 64 * 1024 } as const;

interface OpenItem {
  readonly item: Item;
  readonly redactor: StreamRedactor;
  readonly maxKept: number;
  appended: string;
  checkpointed: number;
  lastCheckpointAt: number;
}

export interface Recorder {
  record(events: readonly EventBody[], author?: Author): Promise<void>;
  stream(delta: Omit<ItemDelta, "threadId" | "turnId">): void;
  /** Completes every item still open, as interrupted, and settles every intent whose call broke off, as unknown. */
  closeOpenItems(): Promise<void>;
}

export interface RecorderOptions {
  readonly threadId: string;
  readonly turnId: string;
  readonly runner: string;
}

export function createRecorder(journal: Journal, live: Live, options: RecorderOptions): Recorder {
  const { threadId, turnId } = options;
  const open = new Map<string, OpenItem>();
  const intents = new Map<string, EventOf<"tool.intended">>();
  let queue: Promise<void> = Promise.resolve();

  function enqueue(events: readonly EventBody[], author: Author): Promise<void> {
    const durability = events.some((event) => NEEDS_SYNC.has(event.type)) ? "full" : "relaxed";
    // One at a time: the order of calls is the order in the stream. A failure reaches every later call too,
    // because a turn that cannot be recorded must not go on.
    queue = queue.then(async () => {
      await journal.append({ stream: threadId, author, events, durability });
    });
    return queue;
  }

  function opened(item: Item): OpenItem {
    const maxKept = channelOf(item) === "output" ? MAX_KEPT_CHARS.output : MAX_KEPT_CHARS.text;
    const redactor = createStreamRedactor(journal.redactor);
    return { item, redactor, maxKept, appended: "", checkpointed: 0, lastCheckpointAt: performance.now() };
  }

  function publish(delta: Omit<ItemDelta, "threadId" | "turnId">): void {
    if (delta.delta !== "") live.publish({ threadId, turnId, ...delta });
  }

  function checkpoint(item: OpenItem, channel: string): void {
    const now = performance.now();
    if (now - item.lastCheckpointAt < CHECKPOINT_EVERY_MS || item.checkpointed >= item.maxKept) return;
    const appended = item.appended.slice(item.checkpointed, item.maxKept);
    if (appended === "") return;
    item.lastCheckpointAt = now;
    item.checkpointed += appended.length;
    const itemId = item.item.id;
    // A failed checkpoint stays in the queue's promise and is thrown by the next record.
    enqueue([{ type: "item.checkpointed", v: 1, turnId, itemId, channel, appended }], agent).catch(() => undefined);
  }

  const agent: Author = `agent:${options.runner}`;

  return {
    async record(events, author = agent) {
      const completed = new Set(events.flatMap((event) => (event.type === "item.completed" ? [event.item.id] : [])));
      for (const id of completed) {
        const item = open.get(id);
        if (item !== undefined) publishRest(item, publish);
        open.delete(id);
      }
      await enqueue(events, author);
      for (const event of events) {
        if (event.type === "tool.intended") intents.set(event.itemId, event);
        if (event.type === "tool.settled") intents.delete(event.itemId);
        if (event.type === "item.started" && !completed.has(event.item.id)) open.set(event.item.id, opened(event.item));
      }
    },
    stream(delta) {
      const item = open.get(delta.itemId);
      if (item === undefined) return;
      const text = item.redactor.push(delta.delta);
      if (item.appended.length < item.maxKept) item.appended += text;
      publish({ ...delta, delta: text });
      checkpoint(item, delta.channel);
    },
    async closeOpenItems() {
      // A record that failed leaves more open than is known here.
      await queue;
      const left = [...open.values()];
      const settled = [...intents.values()].map((intent): EventBody => unknownOutcome(intent));
      open.clear();
      intents.clear();
      if (left.length + settled.length === 0) return;
      const completed = left.map((item): EventBody => {
        publishRest(item, publish);
        return { type: "item.completed", v: 1, turnId, item: brokenOff(item.item, item.appended, "interrupted") };
      });
      await enqueue([...settled, ...completed], "system");
    },
  };
}

/** Text the redactor held back because it could have been the beginning of a secret. */
function publishRest(item: OpenItem, publish: (delta: Omit<ItemDelta, "threadId" | "turnId">) => void): void {
  const rest = item.redactor.end();
  if (rest === "") return;
  item.appended += rest;
  publish({ itemId: item.item.id, channel: channelOf(item.item), delta: rest });
}

function channelOf(item: Item): ItemDelta["channel"] {
  if (item.type === "agentMessage") return "text";
  if (item.type === "reasoning") return "reasoningSummary";
  return "output";
}
