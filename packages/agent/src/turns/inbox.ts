/**
 * What other doors and processes send to a running turn: answers, steering, interrupts. All of it comes through the
 * journal, in order; the inbox is a reader with a cursor and holds nothing that is not stored.
 */
import type { EventBody, EventOf, StoredAnswer, StoredEvent } from "@heddle/protocol";
import type { SteeringInput } from "../runners/runner.ts";
import type { ReadJournal } from "../threads/history.ts";

export type TurnInbox = ReturnType<typeof openInbox>;

/** Injected by a client, or the result of a command of the user beside the turn. */
export type Injected = EventOf<"context.injected"> | EventOf<"context.added">;

function isCommandOfUser(body: EventBody): body is EventOf<"context.added"> {
  return body.type === "context.added" && body.source === "shell";
}

export interface InboxOptions {
  readonly threadId: string;
  readonly turnId: string;
  readonly after: number;
  /** Of the turn and stored before that, but not handled yet. */
  readonly unread?: readonly StoredEvent[] | undefined;
  onInterrupt(event: EventOf<"turn.interrupt-requested">): void;
  /** The journal can no longer be followed; the turn must not continue without it. */
  onFailure(error: unknown): void;
}

export function openInbox(journal: ReadJournal, options: InboxOptions) {
  const closing = new AbortController();
  const resolutions = createReplies<StoredAnswer>();
  const clientAnswers = createReplies<EventOf<"tool.answered">>();
  const steering: SteeringInput[] = [];
  const injected: Injected[] = [];
  const changes: EventOf<"turn.settings-changed">[] = [];
  let seen = options.after;
  let hasArrived = false;
  let arrived = Promise.withResolvers<void>();

  function look(event: StoredEvent): void {
    const { body, version } = event;
    // The tail and a direct read may both see an event; the version decides.
    if (version <= seen) return;
    seen = version;
    if (body.type === "context.injected" || isCommandOfUser(body)) injected.push(body);
    if (body.type === "message.received") hasArrived = true;
    if ("turnId" in body && body.turnId === options.turnId) receive(event);
  }

  function receive({ body, author }: StoredEvent): void {
    if (body.type === "turn.steered") {
      steering.push({ ...body, by: author });
      arrived.resolve();
    }
    if (body.type === "turn.settings-changed") changes.push(body);
    if (body.type === "turn.interrupt-requested") options.onInterrupt(body);
    if (body.type === "approval.resolved") resolutions.put(body.approvalId, { ...body, by: author });
    if (body.type === "tool.answered") clientAnswers.put(body.itemId, body);
  }

  async function follow(): Promise<void> {
    try {
      for await (const event of journal.tail({
        stream: options.threadId,
        after: options.after,
        signal: closing.signal,
      })) {
        look(event);
      }
    } catch (error) {
      if (!closing.signal.aborted) options.onFailure(error);
    }
  }

  async function catchUp(): Promise<void> {
    for (;;) {
      const page = await journal.read({ stream: options.threadId, after: seen, limit: PAGE });
      for (const event of page) look(event);
      if (page.length < PAGE) return;
    }
  }

  for (const event of options.unread ?? []) receive(event);
  const following = follow();

  return {
    /** By approval id; rejects when the signal aborts or the journal cannot be read. */
    resolution: (approvalId: string, signal: AbortSignal) => resolutions.wait(approvalId, signal),
    /** By the item of the call. */
    clientAnswer: (itemId: string, signal: AbortSignal) => clientAnswers.wait(itemId, signal),
    async takeSteering(): Promise<readonly SteeringInput[]> {
      await catchUp();
      arrived = Promise.withResolvers<void>();
      return steering.splice(0);
    },
    async steered(signal: AbortSignal): Promise<void> {
      if (steering.length === 0) await unlessAborted(arrived.promise, signal);
    },
    /** Reads to the end of the stream and returns its version. */
    async seenVersion(): Promise<number> {
      await catchUp();
      return seen;
    },
    hasSteering: (): boolean => steering.length > 0,
    changes: (): readonly EventOf<"turn.settings-changed">[] => changes,
    takeArrived(): boolean {
      const arrived = hasArrived;
      hasArrived = false;
      return arrived;
    },
    takeInjected: (): readonly Injected[] => injected.splice(0),
    async [Symbol.asyncDispose](): Promise<void> {
      closing.abort();
      await following;
    },
  };
}

const PAGE = 500;

/** Replies by id; the first one wins. */
function createReplies<Reply>() {
  const known = new Map<string, Reply>();
  const waiting = new Map<string, (reply: Reply) => void>();
  return {
    put(id: string, reply: Reply): void {
      if (known.has(id)) return;
      known.set(id, reply);
      waiting.get(id)?.(reply);
    },
    async wait(id: string, signal: AbortSignal): Promise<Reply> {
      signal.throwIfAborted();
      const reply = known.get(id);
      if (reply !== undefined) return reply;
      const { promise, resolve, reject } = Promise.withResolvers<Reply>();
      const onAbort = (): void => reject(signal.reason);
      waiting.set(id, resolve);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        return await promise;
      } finally {
        signal.removeEventListener("abort", onAbort);
        waiting.delete(id);
      }
    },
  };
}

async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  const onAbort = (): void => resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([promise, stopped]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
