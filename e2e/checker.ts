/**
 * What a fault has broken. Opens a home the way the next start of Heddle does, recovery included, reads every event, and
 * names each acknowledged input that is gone, each turn, item and intent without exactly one end, each effect that
 * happened twice, and each damaged record. Every list is empty, or a promise does not hold.
 */
import { openHeddle, type Heddle } from "@heddle/agent";
import type { ProviderConfig } from "@heddle/models";
import { isTaskEvent, type StoredEvent } from "@heddle/protocol";

export interface Acknowledged {
  readonly threadId: string;
  readonly turnId?: string;
  readonly clientId?: string;
}

export interface Outside {
  /** What a door said it had taken. */
  readonly acknowledged: readonly Acknowledged[];
  /** Lines that tool calls left, each of them different. */
  readonly effects: readonly string[];
}

export interface Findings {
  readonly lostInputs: readonly string[];
  /** One client id, more than one turn. */
  readonly repeatedTurns: readonly string[];
  readonly turnsWithoutOneEnd: readonly string[];
  readonly itemsWithoutOneEnd: readonly string[];
  readonly repeatedEffects: readonly string[];
  readonly unsettledIntents: readonly string[];
  /** Sent and not delivered exactly once, nor refused; or a question with two ends, or none after the turn it caused. */
  readonly lostMessages: readonly string[];
  readonly damage: readonly string[];
}

export const NOTHING_FOUND: Findings = {
  lostInputs: [],
  repeatedTurns: [],
  turnsWithoutOneEnd: [],
  itemsWithoutOneEnd: [],
  repeatedEffects: [],
  unsettledIntents: [],
  lostMessages: [],
  damage: [],
};

/** Opens the home as the next process would. */
export function reopen(home: string, providers: readonly ProviderConfig[] = []): Promise<Heddle> {
  return openHeddle({ home, providers, env: { PATH: process.env["PATH"] }, isUnattended: true });
}

export async function checkHome(home: string, outside: Outside): Promise<Findings> {
  await using heddle = await reopen(home);
  return await check(heddle, outside);
}

export async function check(heddle: Heddle, outside: Outside): Promise<Findings> {
  const { damage } = await heddle.journal.verify();
  const { findings } = await heddle.journal.replay();
  const events = await heddle.journal.read({ after: 0, limit: Number.MAX_SAFE_INTEGER });
  return {
    ...findingsIn(events, outside),
    damage: [
      ...damage.map(({ kind, message }) => `${kind}: ${message}`),
      ...findings.filter(({ weight }) => weight !== "warning").map(({ code, message }) => `${code}: ${message}`),
    ],
  };
}

/** Everything but damage. Pure. */
function findingsIn(events: readonly StoredEvent[], outside: Outside): Omit<Findings, "damage"> {
  return {
    lostInputs: lostInputs(events, outside.acknowledged),
    repeatedTurns: repeatedTurns(events),
    turnsWithoutOneEnd: turnsWithoutOneEnd(events),
    itemsWithoutOneEnd: itemsWithoutOneEnd(events),
    repeatedEffects: repeated(outside.effects),
    unsettledIntents: unsettledIntents(events),
    lostMessages: lostMessages(events),
  };
}

function lostInputs(events: readonly StoredEvent[], acknowledged: readonly Acknowledged[]): string[] {
  const admitted = events.flatMap(({ stream, body }) =>
    body.type === "turn.admitted" ? [{ stream, turnId: body.turnId, clientId: body.clientId }] : [],
  );
  const isThere = ({ threadId, turnId, clientId }: Acknowledged): boolean =>
    admitted.some(
      (turn) =>
        turn.stream === threadId &&
        (turnId === undefined || turn.turnId === turnId) &&
        (clientId === undefined || turn.clientId === clientId),
    );
  return acknowledged.filter((input) => !isThere(input)).map((input) => JSON.stringify(input));
}

function repeatedTurns(events: readonly StoredEvent[]): string[] {
  return repeated(
    events.flatMap(({ stream, body }) =>
      body.type === "turn.admitted" && body.clientId !== undefined ? [`${stream} ${body.clientId}`] : [],
    ),
  );
}

function turnsWithoutOneEnd(events: readonly StoredEvent[]): string[] {
  const ends = new Map<string, number>();
  const last = new Map<string, string>();
  const wrong: string[] = [];
  for (const { body } of events) {
    // A task tells of its turns after they have ended, in its own stream.
    if (!("turnId" in body) || isTaskEvent(body)) continue;
    const { turnId, type } = body;
    last.set(turnId, type);
    if (type === "turn.admitted") {
      if (ends.has(turnId)) wrong.push(`${turnId} was admitted twice`);
      ends.set(turnId, 0);
    } else if (type === "turn.completed") ends.set(turnId, (ends.get(turnId) ?? 0) + 1);
    else if (ends.get(turnId) !== 0) wrong.push(`${turnId} has ${type} outside its life`);
  }
  for (const [turnId, count] of ends) {
    // One that waits for a word has its end before it; whoever goes on with its thread is checked to find it there.
    const isWaiting = count === 0 && (last.get(turnId) ?? "").startsWith("approval.");
    if (count !== 1 && !isWaiting) wrong.push(`${turnId} has ${count} ends`);
  }
  return wrong;
}

function itemsWithoutOneEnd(events: readonly StoredEvent[]): string[] {
  const open = new Map<string, "started" | "completed">();
  const wrong: string[] = [];
  for (const { body } of events) {
    if (body.type === "item.started") {
      if (open.has(body.item.id)) wrong.push(`${body.item.id} was started twice`);
      open.set(body.item.id, "started");
    } else if (body.type === "item.completed") {
      if (open.get(body.item.id) !== "started") wrong.push(`${body.item.id} was completed twice or never started`);
      open.set(body.item.id, "completed");
    }
  }
  for (const [id, state] of open) if (state === "started") wrong.push(`${id} was never completed`);
  return wrong;
}

function unsettledIntents(events: readonly StoredEvent[]): string[] {
  const settled = new Map<string, number>();
  for (const { body } of events) {
    // Item ids are Heddle's own, call ids may repeat.
    if (body.type === "tool.intended") settled.set(body.itemId, settled.get(body.itemId) ?? 0);
    if (body.type === "tool.settled") settled.set(body.itemId, (settled.get(body.itemId) ?? 0) + 1);
  }
  return [...settled]
    .filter(([, count]) => count !== 1)
    .map(([itemId, count]) => `${itemId} was settled ${count} times`);
}

function lostMessages(events: readonly StoredEvent[]): string[] {
  const idsOf = (type: "message.sent" | "message.received" | "message.settled"): string[] =>
    events.flatMap(({ body }) => (body.type === type ? [body.messageId] : []));
  const [received, settled] = [idsOf("message.received"), idsOf("message.settled")];
  const undelivered = idsOf("message.sent").filter((id) => !received.includes(id) && !settled.includes(id));
  return [
    ...undelivered.map((id) => `${id} was sent, and neither delivered nor refused`),
    ...repeated(received).map((id) => `${id} was delivered twice`),
    ...repeated(settled).map((id) => `${id} ended twice`),
    ...questionsOfEndedTurns(events)
      .filter((id) => !settled.includes(id))
      .map((id) => `${id} has no end, the turn that was to answer it has`),
  ];
}

function questionsOfEndedTurns(events: readonly StoredEvent[]): string[] {
  const ended = new Set(events.flatMap(({ body }) => (body.type === "turn.completed" ? [body.turnId] : [])));
  const asks = new Set(
    events.flatMap(({ body }) => (body.type === "message.received" && body.kind === "ask" ? [body.messageId] : [])),
  );
  return events.flatMap(({ body }) =>
    body.type === "turn.admitted" && ended.has(body.turnId) ? (body.messages ?? []).filter((id) => asks.has(id)) : [],
  );
}

function repeated(values: readonly string[]): string[] {
  const seen = new Set<string>();
  return values.filter((value) => seen.has(value) || !seen.add(value));
}
