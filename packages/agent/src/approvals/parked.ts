/**
 * A turn that waits for an answer outlives its process. When nothing else of it was under way it is parked: its question
 * stays open for every door, and the answer lets the turn go on in the process that takes it, to its one terminal event.
 *
 *   running ──asks──▶ waiting ──answer──▶ running                       one process
 *                        │ the process ends: killed, or stopped
 *                        ▼
 *                     parked ──answer (any door)──▶ answered            nobody's; the journal alone
 *                        │                             │ turn.resumed: a server takes it, one of several by its version
 *                        │                             ▼
 *                        │                          running: the call is judged again and meets what hooks and people
 *                        │                                   have said; its intent is durable before it runs, so it runs once
 *                        ▼
 *                     closed: turn/interrupt, `exec` on the thread, or no way to carry it on. The question is cancelled.
 *
 * Not parked, but closed by recovery as ever: a turn with an intent or an item open, one that somebody told to stop, one of
 * an unattended run, and one of a thread that is to leave no trace.
 */
import {
  FIRST_EPOCH,
  inputItemId,
  type EventBody,
  type EventOf,
  type Holder,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { appendAt } from "../threads/append-at.ts";
import { STEERING } from "../context/context.ts";
import { leaseStateOf, thisHolder } from "../recovery/holder.ts";
import { addSpent, NOTHING_SPENT } from "../turns/outcome.ts";
import { readTurn, type ReadJournal } from "../threads/history.ts";
import type { Spent } from "../runners/runner.ts";
import type { CarriedOver, StoredQuestion } from "./carried.ts";

export type WaitingQuestions = ReadonlyMap<string, StoredQuestion>;

/** The questions a turn waits for, by call, when it waits for nothing else; undefined: it cannot be continued. Pure. */
export function waitingQuestions(turnId: string, events: readonly StoredEvent[]): WaitingQuestions | undefined {
  const asked = new Map<string, StoredQuestion>();
  const open = new Set<string>();
  for (const { body } of events) {
    if (!("turnId" in body) || body.turnId !== turnId) continue;
    switch (body.type) {
      case "turn.admitted":
        // Its agent is a client of the process that died.
        if (body.task === "outside") return undefined;
        break;
      case "turn.completed":
      case "turn.interrupt-requested":
        return undefined;
      case "approval.requested": {
        if (body.isUnattended === true) return undefined;
        const { approvalId, question, answerBy } = body;
        asked.set(question.callId, { approvalId, question, answerBy, isAnswered: false });
        break;
      }
      case "approval.resolved": {
        const found = [...asked.values()].find(({ approvalId }) => approvalId === body.approvalId);
        if (found !== undefined) asked.set(found.question.callId, { ...found, isAnswered: true });
        break;
      }
      case "tool.intended":
        open.add(body.itemId);
        asked.delete(body.callId);
        break;
      case "tool.settled":
        open.delete(body.itemId);
        asked.delete(body.callId);
        break;
      case "item.started":
        open.add(body.item.id);
        break;
      case "item.completed":
        open.delete(body.item.id);
        break;
      default:
        break;
    }
  }
  return asked.size > 0 && open.size === 0 ? asked : undefined;
}

/** The turn waits for an answer and nothing else, so that another process can continue it. */
export async function isAtQuestion(journal: ReadJournal, turnId: string): Promise<boolean> {
  return waitingQuestions(turnId, await readTurn(journal, turnId)) !== undefined;
}

/** The process that admitted the turn or took it last, and its epoch. */
export function leaseOf(turnId: string, events: readonly StoredEvent[]): TurnLease | undefined {
  let lease: TurnLease | undefined;
  for (const { body } of events) {
    if (body.type === "turn.admitted" && body.turnId === turnId) lease = { holder: body.holder, epoch: FIRST_EPOCH };
    if (body.type !== "turn.resumed" || body.turnId !== turnId) continue;
    lease = { holder: body.holder, epoch: body.epoch ?? (lease?.epoch ?? 0) + 1 };
  }
  return lease;
}

interface TurnLease {
  readonly holder: Holder;
  readonly epoch: number;
}

export interface OpenTurn {
  readonly admitted: EventOf<"turn.admitted">;
  readonly events: readonly StoredEvent[];
  readonly lease: TurnLease;
}

export async function readOpenTurn(journal: ReadJournal, turnId: string): Promise<OpenTurn | undefined> {
  if ((await journal.threads.turn(turnId))?.status !== "open") return undefined;
  const events = await readTurn(journal, turnId);
  const admitted = events[0]?.body;
  const lease = leaseOf(turnId, events);
  return admitted?.type === "turn.admitted" && lease !== undefined ? { admitted, events, lease } : undefined;
}

/**
 * Makes this process the holder of a turn whose question is answered; undefined: there is none, or another process took
 * it.
 */
export function takeParked(
  journal: Journal,
  threadId: string,
  turnId: string,
): Promise<{ readonly admitted: EventOf<"turn.admitted">; readonly epoch: number } | undefined> {
  return appendAt(journal, threadId, async (expectedVersion) => {
    const turn = await readOpenTurn(journal, turnId);
    const questions = turn && waitingQuestions(turnId, turn.events);
    if (turn === undefined || questions === undefined || !isAnswered(questions)) return undefined;
    if ((await leaseStateOf(journal, turn.lease.holder)) !== "dead") return undefined;
    const epoch = turn.lease.epoch + 1;
    await journal.append({
      stream: threadId,
      author: "system",
      events: [{ type: "turn.resumed", v: 1, turnId, holder: thisHolder(), epoch }],
      expectedVersion,
    });
    failpoint("turn.after-resume");
    return { admitted: turn.admitted, epoch };
  });
}

export function isAnswered(questions: WaitingQuestions): boolean {
  return [...questions.values()].some((question) => question.isAnswered);
}

export function carryOver(turnId: string, history: readonly StoredEvent[], questions: WaitingQuestions): CarriedOver {
  const admitted = history.find(({ body }) => body.type === "turn.admitted" && body.turnId === turnId);
  const own = history.filter(({ body }) => "turnId" in body && body.turnId === turnId);
  const bodies = own.map(({ body }) => body);
  const waiting = new Set([...questions.values()].map(({ approvalId }) => approvalId));
  const answers = own.filter(({ body }) => body.type === "approval.resolved" && waiting.has(body.approvalId));
  const stops = own.filter(({ body }) => body.type === "turn.interrupt-requested");
  return {
    questions: new Map(questions),
    hookRuns: bodies.reduce(hookRunsWith, []),
    unread: [...answers, ...pendingSteering(turnId, own), ...stops],
    spent: bodies.reduce(spentWith, NOTHING_SPENT),
    admittedAt: admitted?.at ?? 0,
  };
}

/** Steering reaches the model in order, each once, unless a hook refuses it. */
export function pendingSteering(turnId: string, own: readonly StoredEvent[]): readonly StoredEvent[] {
  const open = own.filter(
    ({ body }) =>
      (body.type === "item.completed" && body.item.type === "userMessage" && body.item.id !== inputItemId(turnId)) ||
      (body.type === "hook.ran" && body.subject === STEERING && body.outcome === "blocked"),
  );
  return own.filter(({ body }) => body.type === "turn.steered").slice(open.length);
}

/** A hook that was stopped with its process has no result. Hooks of calls that have a result are not needed. */
function hookRunsWith(runs: EventOf<"hook.ran">[], body: EventBody): EventOf<"hook.ran">[] {
  if (body.type === "hook.ran" && body.event === "PreToolUse" && body.exitCode !== undefined) return [...runs, body];
  return body.type === "tool.settled" ? runs.filter(({ subject }) => subject !== body.callId) : runs;
}

function spentWith(spent: Spent, body: EventBody): Spent {
  if (body.type !== "model.responded") return spent;
  const { usage, costUsd } = body;
  return addSpent(spent, costUsd === undefined ? { usage } : { usage, costUsd });
}
