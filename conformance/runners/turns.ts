/** Turns as a client of Heddle's HTTP door sees them. */
import type { Followed, HeddleClient } from "@heddle/client";
import type { EventOf, EventType } from "@heddle/protocol";
import type { StreamedEvent } from "@heddle/protocol/http";
import { expect } from "vitest";

/** Only to end what hangs: some programs take half a minute to start on a busy machine. */
const DEADLINE_MS = 120_000;

export type TurnOptions = Omit<Parameters<HeddleClient["startTurn"]>[1], "input">;
type Input = Parameters<HeddleClient["startTurn"]>[1]["input"];

export interface RunningTurn {
  readonly id: string;
  /** Everything that was heard of it, in order, live deltas too. */
  readonly heard: readonly Followed[];
  /** The first that fits, whenever it comes. */
  sees<T>(find: (followed: Followed) => T | undefined): Promise<T>;
  /** Its question, once it is asked. */
  readonly asked: Promise<EventOf<"approval.requested">>;
  readonly done: Promise<EventOf<"turn.completed">>;
}

export async function startTurn(
  client: HeddleClient,
  threadId: string,
  input: Input,
  options: TurnOptions = {},
): Promise<RunningTurn> {
  const { id, seq } = await client.startTurn(threadId, { input, ...options });
  return followTurn(client, { threadId, turnId: id, after: seq - 1 });
}

function followTurn(
  client: HeddleClient,
  { threadId, turnId, after }: { readonly threadId: string; readonly turnId: string; readonly after: number },
): RunningTurn {
  const heard: Followed[] = [];
  let wake = Promise.withResolvers<void>();
  let over: Error | undefined;
  async function listen(): Promise<void> {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for await (const followed of client.follow({ threadId, after, deltas: true, signal })) {
      heard.push(followed);
      wake.resolve();
      wake = Promise.withResolvers();
      if (followed.kind === "event" && isEndOf(turnId, followed.event.body)) return;
    }
  }
  listen()
    .then(
      () => (over = new Error("the turn has ended without it")),
      (error: unknown) => (over = new Error(`the turn was not followed to its end: ${kinds(heard)}`, { cause: error })),
    )
    .finally(() => wake.resolve());

  async function sees<T>(find: (followed: Followed) => T | undefined): Promise<T> {
    for (let at = 0; ;) {
      for (; at < heard.length; at += 1) {
        const followed = heard[at];
        const found = followed === undefined ? undefined : find(followed);
        if (found !== undefined) return found;
      }
      if (over !== undefined) throw over;
      await wake.promise;
    }
  }
  const event = <T extends EventType>(type: T): Promise<EventOf<T>> =>
    sees((followed) => {
      if (followed.kind !== "event" || followed.event.body.type !== type) return undefined;
      const body = followed.event.body as EventOf<T>;
      return !("turnId" in body) || body.turnId === turnId ? body : undefined;
    });
  return {
    id: turnId,
    heard,
    sees,
    get asked() {
      return event("approval.requested");
    },
    get done() {
      return event("turn.completed");
    },
  };
}

function isEndOf(turnId: string, body: StreamedEvent["body"]): boolean {
  return body.type === "turn.completed" && body.turnId === turnId;
}

function kinds(heard: readonly Followed[]): string {
  return heard.map((one) => (one.kind === "event" ? one.event.body.type : one.kind)).join(" ");
}

/** The whole stored thread. */
export async function eventsOf(client: HeddleClient, threadId: string): Promise<readonly StreamedEvent[]> {
  const events: StreamedEvent[] = [];
  for await (const followed of client.follow({ threadId, live: false }))
    if (followed.kind === "event") events.push(followed.event);
  return events;
}

export function ofType<T extends EventType>(events: readonly StreamedEvent[], type: T): EventOf<T>[] {
  return events.map(({ body }) => body).filter((body): body is EventOf<T> => body.type === type);
}

/** Each turn has one end, and each of its items one before that; nothing comes after the last end. */
export function expectClosed(events: readonly StreamedEvent[]): void {
  const ended = ofType(events, "turn.completed").map(({ turnId }) => turnId);
  expect(ended).toEqual(ofType(events, "turn.admitted").map(({ turnId }) => turnId));
  expect(events.at(-1)?.body.type).toBe("turn.completed");
  const ids = (type: "item.started" | "item.completed"): string[] => ofType(events, type).map(({ item }) => item.id);
  expect(ids("item.completed").toSorted()).toEqual(ids("item.started").toSorted());
}

type Item = EventOf<"item.completed">["item"];

export function itemsOf<T extends Item["type"]>(
  events: readonly StreamedEvent[],
  type: T,
): Extract<Item, { type: T }>[] {
  return ofType(events, "item.completed")
    .map(({ item }) => item)
    .filter((item): item is Extract<Item, { type: T }> => item.type === type);
}

export function messagesOf(events: readonly StreamedEvent[]): readonly string[] {
  return itemsOf(events, "agentMessage").map(({ text }) => text);
}

/** With the reason where it did not. */
export async function expectCompleted(turn: RunningTurn): Promise<EventOf<"turn.completed">> {
  const done = await turn.done;
  expect({ status: done.status, failure: done.failure }).toEqual({ status: "completed", failure: undefined });
  return done;
}

/** For `sees`: a command begins. */
export function commandStart(followed: Followed): true | undefined {
  if (followed.kind !== "event" || followed.event.body.type !== "item.started") return undefined;
  return followed.event.body.item.type === "commandExecution" ? true : undefined;
}
