/**
 * Records what a running turn does: appends in order, knows which items are open, keeps what they have streamed (a checkpoint at
 * most once a second, capped), and at the end completes whatever was left started. Deltas and stored text agree, because
 * both pass the same redaction.
 *
 * The life of an item here; every arrow to `completed` goes through one function, so that there is one of them:
 *
 *   started ─▶ completed                    recorded by the runner with its whole content
 *   started ─▶ completed, interrupted       closeOpenItems: an answer broke off, or the turn is over
 *   started ─▶ followed ─▶ completed        its command ended: with the whole output and the exit code
 *                     └──▶ completed        closeFollowed: the turn is over and its sandbox closed, which ended the command
 *                                           (interrupted) or lets it run on (completed, with its processId)
 *   followed ─▶ (crash) ─▶ unknown          recover.ts, with what checkpoints kept; the command is not run again
 */
import { clockMs, never, type Author, type EventBody, type EventOf, type Item, type ItemDelta } from "@heddle/protocol";
import { createStreamRedactor } from "@heddle/journal";
import { createRedactedPieces, type RedactedPieces } from "./redacted-pieces.ts";
import type { OngoingItem } from "@heddle/tools";
import type { Live } from "./live.ts";
import type { LeasedJournal } from "./turn-lease.ts";
import { OUTCOME_UNKNOWN } from "../context/context.ts";

/** Acknowledged facts and everything that guards a side effect: on disk before anyone continues. */
const NEEDS_SYNC: ReadonlySet<EventBody["type"]> = new Set([
  "tool.intended",
  "tool.settled",
  "path.violated",
  "turn.completed",
]);

const CHECKPOINT_EVERY_MS = 1000;
/** A message fits whole; the rest of a command's output is in the spill file. */
const MAX_KEPT_CHARS = { text: 1024 * 1024, output: 64 * 1024 } as const;

interface OpenItem {
  readonly item: Item;
  readonly pieces: RedactedPieces;
  readonly maxKept: number;
  appended: string;
  checkpointed: number;
  /** Characters that were told live, more than are kept. */
  told: number;
  lastCheckpointAt: number;
}

export type Recorder = ReturnType<typeof createRecorder>;

export function createRecorder(
  leased: LeasedJournal,
  live: Live,
  { threadId, turnId, runner }: { readonly threadId: string; readonly turnId: string; readonly runner: string },
) {
  const agent: Author = `agent:${runner}`;
  const open = new Map<string, OpenItem>();
  const intents = new Map<string, EventOf<"tool.intended">>();
  let queue: Promise<void> = Promise.resolve();

  function enqueue(events: readonly EventBody[], author: Author): Promise<readonly EventBody[]> {
    const durability = events.some((event) => NEEDS_SYNC.has(event.type)) ? "full" : "relaxed";
    // One at a time, in the order of calls. A failure reaches every later call too,
    // because a turn that cannot be recorded must not continue.
    const appended = queue.then(() => leased.append({ stream: threadId, author, events, durability }));
    queue = appended.then(() => undefined);
    // The caller gets its failure.
    queue.catch(() => undefined);
    return appended.then((stored) => stored.events.map(({ body }) => body));
  }

  function opened(item: Item): OpenItem {
    const maxKept = channelOf(item) === "output" ? MAX_KEPT_CHARS.output : MAX_KEPT_CHARS.text;
    const pieces = createRedactedPieces(createStreamRedactor(leased.redactor));
    return { item, pieces, maxKept, appended: "", checkpointed: 0, told: 0, lastCheckpointAt: clockMs() };
  }

  const publish = (delta: Omit<ItemDelta, "threadId" | "turnId">): void => live.publish({ threadId, turnId, ...delta });

  function checkpoint(item: OpenItem, channel: string): void {
    const part = nextPart(item);
    if (part === undefined) return;
    // The next record throws what a failed checkpoint leaves in the queue.
    enqueue([{ type: "item.checkpointed", v: 1, turnId, channel, ...part }], agent).catch(() => undefined);
  }

  async function record(events: readonly EventBody[], author: Author): Promise<readonly EventBody[]> {
    const completed = new Set(events.flatMap((event) => (event.type === "item.completed" ? [event.item.id] : [])));
    for (const id of completed) {
      const item = open.get(id);
      if (item !== undefined) publishRest(item, publish);
      open.delete(id);
    }
    const stored = await enqueue(events, author);
    for (const event of events) {
      if (event.type === "tool.intended") intents.set(event.itemId, event);
      if (event.type === "tool.settled") intents.delete(event.itemId);
      if (event.type === "item.started" && !completed.has(event.item.id)) open.set(event.item.id, opened(event.item));
    }
    return stored;
  }

  const following = createFollowing(turnId, (events) => record(events, agent));

  return {
    /** Returns the events as they are stored. */
    record: (events: readonly EventBody[], author: Author = agent) => record(events, author),
    stream(delta: Omit<ItemDelta, "threadId" | "turnId" | "offset">): void {
      const item = open.get(delta.itemId);
      if (item === undefined) return;
      for (const piece of item.pieces.push(delta.delta)) {
        if (item.appended.length < item.maxKept) item.appended += piece;
        tell(item, piece, { channel: delta.channel, publish });
      }
      checkpoint(item, delta.channel);
    },
    /**
     * Completes every open item as interrupted, except those that are followed, and settles every intent without a result
     * as unknown.
     */
    async closeOpenItems(): Promise<void> {
      // After a failed record more is open than is known here.
      await queue;
      const left = [...open.values()].filter(({ item }) => !following.has(item.id));
      const settled = [...intents.values()].map((intent): EventBody => unknownOutcome(intent));
      for (const { item } of left) open.delete(item.id);
      intents.clear();
      if (left.length + settled.length === 0) return;
      const completed = left.map((item): EventBody => {
        publishRest(item, publish);
        return { type: "item.completed", v: 1, turnId, item: brokenOff(item.item, item.appended, "interrupted") };
      });
      await enqueue([...settled, ...completed], "system");
    },
    /** Completes the item when its command ends; returns what was recorded then. Never rejects. */
    follow: (itemId: string, ongoing: OngoingItem) => following.follow(itemId, ongoing),
    /** Waits until the ends of commands that have ended are recorded. */
    settleFollowed: () => following.settle(),
    async closeFollowed(): Promise<void> {
      await following.close();
      await queue;
    },
  };
}

function createFollowing(turnId: string, record: (events: readonly EventBody[]) => Promise<readonly EventBody[]>) {
  const followed = new Map<string, OngoingItem>();
  const ends = new Map<string, Promise<readonly EventBody[]>>();

  /** Removed first: an item is ended once, by its command or by the turn. */
  async function end(item: Item): Promise<readonly EventBody[]> {
    return followed.delete(item.id) ? record([{ type: "item.completed", v: 1, turnId, item }]) : [];
  }

  return {
    has: (itemId: string): boolean => followed.has(itemId),
    follow(itemId: string, ongoing: OngoingItem): Promise<readonly EventBody[]> {
      followed.set(itemId, ongoing);
      const ended = ongoing.ended.then(end).catch(() => []);
      ends.set(itemId, ended);
      return ended.finally(() => ends.delete(itemId));
    },
    async settle(): Promise<void> {
      for (const [itemId, { isRunning }] of followed) if (!isRunning) await ends.get(itemId);
    },
    async close(): Promise<void> {
      for (const ongoing of followed.values()) await end(ongoing.isRunning ? ongoing.leave() : await ongoing.ended);
    },
  };
}

/** What is to be kept of it now, at most once in a while; undefined: nothing yet. */
function nextPart(item: OpenItem): Pick<EventOf<"item.checkpointed">, "itemId" | "offset" | "appended"> | undefined {
  const now = clockMs();
  if (now - item.lastCheckpointAt < CHECKPOINT_EVERY_MS || item.checkpointed >= item.maxKept) return undefined;
  const offset = item.checkpointed;
  const appended = item.appended.slice(offset, item.maxKept);
  if (appended === "") return undefined;
  item.lastCheckpointAt = now;
  item.checkpointed += appended.length;
  return { itemId: item.item.id, offset, appended };
}

type Publish = (delta: Omit<ItemDelta, "threadId" | "turnId">) => void;

function tell(
  item: OpenItem,
  delta: string,
  { channel, publish }: { readonly channel: ItemDelta["channel"]; readonly publish: Publish },
): void {
  publish({ itemId: item.item.id, channel, offset: item.told, delta });
  item.told += delta.length;
}

/** Text that the redactor held back as the possible beginning of a secret. */
function publishRest(item: OpenItem, publish: Publish): void {
  for (const piece of item.pieces.end()) {
    item.appended += piece;
    tell(item, piece, { channel: channelOf(item.item), publish });
  }
}

function channelOf(item: Item): ItemDelta["channel"] {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return "text";
  if (item.type === "reasoning") return "reasoningSummary";
  return "output";
}

export function unknownOutcome(intent: EventOf<"tool.intended">): EventBody {
  return {
    type: "tool.settled",
    v: 1,
    turnId: intent.turnId,
    callId: intent.callId,
    itemId: intent.itemId,
    tool: intent.tool,
    outcome: "unknown",
    failure: { code: "turn.abandoned", message: OUTCOME_UNKNOWN },
    output: [{ type: "text", text: OUTCOME_UNKNOWN }],
  };
}

/** A started item that nobody can finish. */
export function brokenOff(item: Item, appended: string, status: "unknown" | "interrupted" = "unknown"): Item {
  switch (item.type) {
    case "userMessage":
    case "notice":
    case "webSearch":
      return item;
    case "agentMessage":
      return { ...item, text: item.text + appended, isPartial: true };
    case "reasoning":
      return appended === "" ? item : { ...item, summary: [...item.summary, appended] };
    case "proposedPlan":
      return { ...item, status, text: item.text + appended };
    case "commandExecution":
      return { ...item, status, output: item.output + appended };
    case "fileChange":
    case "toolCall":
    case "mcpToolCall":
    case "collabToolCall":
    case "plan":
    case "imageView":
    case "contextCompaction":
      return { ...item, status };
    default:
      return never(item);
  }
}
