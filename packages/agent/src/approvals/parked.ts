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
  HeddleError,
  inputItemId,
  isHeddleError,
  type ApprovalQuestion,
  type EventBody,
  type EventOf,
  type Holder,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { approvalKey } from "@heddle/tools";
import { STEERING } from "../context/context.ts";
import { leaseStateOf, thisHolder } from "../recovery/holder.ts";
import { addSpent, NOTHING_SPENT } from "../turns/spent.ts";
import { readStream, readTurn, type ReadJournal } from "../threads/stored-events.ts";
import type { Spent } from "../runners/runner.ts";

export interface StoredQuestion {
  readonly approvalId: string;
  readonly question: ApprovalQuestion;
  readonly isAnswered: boolean;
  readonly answerBy?: number | undefined;
}

/** By the calls that wait for them. */
export type WaitingQuestions = ReadonlyMap<string, StoredQuestion>;

/** The questions a turn waits for, when it waits for nothing else; undefined: it cannot be carried on. Pure. */
export function waitingQuestions(turnId: string, events: readonly StoredEvent[]): WaitingQuestions | undefined {
  const asked = new Map<string, StoredQuestion>();
  const open = new Set<string>();
  for (const { body } of events) {
    if (!("turnId" in body) || body.turnId !== turnId) continue;
    switch (body.type) {
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

/** The turn stands at a question and at nothing else, so that another process can carry it on. */
export async function isAtQuestion(journal: ReadJournal, turnId: string): Promise<boolean> {
  return waitingQuestions(turnId, await readTurn(journal, turnId)) !== undefined;
}

/** Who runs a turn, the process that admitted it or the one that took it last, and under which epoch. */
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

/** The turn as it was left, when nobody runs it and it waits for an answer. */
async function readParked(journal: Journal, threadId: string, turnId: string): Promise<Parked | undefined> {
  const row = await journal.threads.turn(turnId);
  if (row === undefined || row.status !== "open") return undefined;
  const events = await readStream(journal, threadId, { after: row.admittedVersion - 1 });
  const admitted = events[0]?.body;
  const lease = leaseOf(turnId, events);
  if (admitted?.type !== "turn.admitted" || lease === undefined) return undefined;
  if ((await leaseStateOf(journal, lease.holder)) !== "dead") return undefined;
  const questions = waitingQuestions(turnId, events);
  return questions === undefined ? undefined : { admitted, events, questions, epoch: lease.epoch };
}

export interface Parked {
  readonly admitted: EventOf<"turn.admitted">;
  /** From its admission on. */
  readonly events: readonly StoredEvent[];
  readonly questions: WaitingQuestions;
  /** Of the lease that ran out; once it is taken, of the new one. */
  readonly epoch: number;
}

/** Makes this process the holder of a turn whose question is answered; undefined: there is none, or another was first. */
export async function takeParked(journal: Journal, threadId: string, turnId: string): Promise<Parked | undefined> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const parked = await readParked(journal, threadId, turnId);
    if (parked === undefined || !isAnswered(parked.questions)) return undefined;
    const epoch = parked.epoch + 1;
    try {
      const { events } = await journal.append({
        stream: threadId,
        author: "system",
        events: [{ type: "turn.resumed", v: 1, turnId, holder: thisHolder(), epoch }],
        expectedVersion: parked.events.at(-1)?.version ?? 0,
      });
      failpoint("turn.after-resume");
      return { ...parked, epoch, events: [...parked.events, ...events] };
    } catch (error) {
      // Another process takes it too, or a person wrote to the thread: the next look tells.
      if (!isHeddleError(error) || error.code !== "store.version-conflict") throw error;
    }
  }
  throw new HeddleError("store.busy", `thread ${threadId} is being changed by another process; try again`);
}

/** Other writers of the stream are people and a process or two. */
const MAX_TRIES = 50;

export function isAnswered(questions: WaitingQuestions): boolean {
  return [...questions.values()].some((question) => question.isAnswered);
}

/** What a turn that is carried on brings along from before. */
export interface CarriedOver {
  /** Questions that its calls have put already, by call; each is met once. */
  readonly questions: Map<string, StoredQuestion>;
  /** What hooks have said to its calls that have no result yet; each is met once. */
  readonly hookRuns: EventOf<"hook.ran">[];
  /** Stored while nobody ran the turn, or not taken before: answers, input that was added, a wish to stop. */
  readonly unheard: readonly StoredEvent[];
  readonly spent: Spent;
  readonly admittedAt: number;
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
    unheard: [...answers, ...untold(turnId, own), ...stops],
    spent: bodies.reduce(spentWith, NOTHING_SPENT),
    admittedAt: admitted?.at ?? 0,
  };
}

/** Steering is told in the order it came, each once, or refused by a hook. */
function untold(turnId: string, own: readonly StoredEvent[]): readonly StoredEvent[] {
  const told = own.filter(
    ({ body }) =>
      (body.type === "item.completed" && body.item.type === "userMessage" && body.item.id !== inputItemId(turnId)) ||
      (body.type === "hook.ran" && body.subject === STEERING && body.outcome === "blocked"),
  );
  return own.filter(({ body }) => body.type === "turn.steered").slice(told.length);
}

/** A hook that did not come to its end, because it was stopped too, has said nothing. Of a call with a result nobody asks. */
function hookRunsWith(runs: EventOf<"hook.ran">[], body: EventBody): EventOf<"hook.ran">[] {
  if (body.type === "hook.ran" && body.event === "PreToolUse" && body.exitCode !== undefined) return [...runs, body];
  return body.type === "tool.settled" ? runs.filter(({ subject }) => subject !== body.callId) : runs;
}

function spentWith(spent: Spent, body: EventBody): Spent {
  if (body.type !== "model.responded") return spent;
  const { usage, costUsd } = body;
  return addSpent(spent, costUsd === undefined ? { usage } : { usage, costUsd });
}

/** The reason of an abort that lets go of a turn without ending it. */
export function parking(message: string): HeddleError {
  return new HeddleError("turn.parked", message);
}

export function isParking(reason: unknown): boolean {
  return isHeddleError(reason) && reason.code === "turn.parked";
}

/** The stored question that this one repeats; it is not put again. */
export function metBefore(carried: CarriedOver | undefined, question: ApprovalQuestion): StoredQuestion | undefined {
  const stored = carried?.questions.get(question.callId);
  // Another act under the same call, because the configuration has changed, is another question.
  if (stored === undefined || approvalKey(stored.question) !== approvalKey(question)) return undefined;
  carried?.questions.delete(question.callId);
  return stored;
}

/** What this hook has said to this call before; it is not asked again. One whose command has changed is another hook. */
export function ranBefore(
  carried: CarriedOver | undefined,
  asked: Pick<EventOf<"hook.ran">, "event" | "subject" | "command">,
): EventOf<"hook.ran"> | undefined {
  const runs = carried?.hookRuns ?? [];
  const at = runs.findIndex(
    ({ event, subject, command }) => event === asked.event && subject === asked.subject && command === asked.command,
  );
  return at < 0 ? undefined : runs.splice(at, 1)[0];
}
