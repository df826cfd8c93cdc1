/**
 * Every turn whose holder is dead (`holder.ts`) gets its one terminal event, and with it everything left hanging:
 *   an intent without a result  → tool.settled `unknown` (never run again by itself)
 *   a started item              → item.completed with what its checkpoints kept
 *   input that was not told yet → item.completed, so that nothing that was acknowledged is unseen
 *   an unanswered question      → approval.resolved `cancel`, unless it is all that is left: then the turn is parked
 * All in one transaction on the version that was read, so that two recovering processes cannot both do it.
 * Threads that were to be deleted with their run are deleted when that run is dead.
 */
import {
  inputItemId,
  isHeddleError,
  NO_USAGE,
  addUsage,
  type EventBody,
  type EventOf,
  type Failure,
  type Item,
  type StoredEvent,
  type Usage,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { leaseStateOf, stateOf } from "./holder.ts";
import {
  pendingSteering,
  readOpenTurn,
  waitingQuestions,
  type OpenTurn,
  type WaitingQuestions,
} from "../approvals/parked.ts";
import { saidOf, userMessage } from "../runners/notes.ts";
import { eventAt } from "../threads/history.ts";
import { leavingEvents } from "../turns/leave-envelope.ts";
import { brokenOff, unknownOutcome } from "../turns/recorder.ts";
import { terminalKey } from "../turns/terminal.ts";
import { purgeThread, removeFiles } from "../threads/threads.ts";
import { endLeftAgents, leftAgent } from "./left-agents.ts";

export interface Recovered {
  readonly closed: number;
  readonly parked: readonly ParkedTurn[];
}

export interface ParkedTurn {
  readonly threadId: string;
  readonly turnId: string;
  readonly questions: WaitingQuestions;
}

/**
 * Closes abandoned turns, but not those that only wait for an answer. `isElsewhere`: only of processes that cannot be
 * seen from here.
 */
export async function recover(journal: Journal, { isElsewhere = false } = {}): Promise<Recovered> {
  if (journal.damage !== undefined) return { closed: 0, parked: [] };
  let closed = 0;
  const parked: ParkedTurn[] = [];
  for (const { subject: turnId, stream: threadId, holder } of await journal.leases.held()) {
    const isTask = turnId === threadId;
    const isSeen = stateOf(holder) !== "unknown";
    if (isTask || (isElsewhere && isSeen) || (await leaseStateOf(journal, holder)) !== "dead") continue;
    const turn = await readOpenTurn(journal, turnId);
    if (turn === undefined) continue;
    const questions = waitingQuestions(turnId, turn.events);
    if (questions !== undefined && !hasOutsideAgent(turn.events) && (await canWait(journal, threadId))) {
      parked.push({ threadId, turnId, questions });
      continue;
    }
    failpoint("recover.before-turn");
    await endLeftAgents(turn.events);
    const end = isSeen ? ABANDONED : RUN_OUT;
    if (await closeAbandoned(journal, turn, end)) closed += 1;
    failpoint("recover.after-turn");
  }
  return { closed, parked };
}

/** Nobody carries on with the process that has asked. */
function hasOutsideAgent(events: readonly StoredEvent[]): boolean {
  return events.some(({ body }) => body.type === "agent.started");
}

/** Recovers what other hosts leave when they stop renewing their leases, as long as a server runs. */
export function watchHosts(journal: Journal, onParked: (parked: Recovered["parked"]) => void): AsyncDisposable {
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => onParked((await recover(journal, { isElsewhere: true })).parked);
  const timer = setInterval(() => {
    // When the store cannot be read or written now, the next look tries again.
    looking ??= look()
      .catch(() => undefined)
      .finally(() => {
        looking = undefined;
      });
  }, journal.leases.renewEveryMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await looking;
    },
  };
}

/**
 * A question of this thread may outlive its process. An ephemeral one leaves no trace, so nobody can come back to it; a
 * child thread ends with the turn of its parent.
 */
export async function canWait(journal: Journal, threadId: string): Promise<boolean> {
  const isEphemeral = (await journal.threads.ephemeral()).some(({ id }) => id === threadId);
  return !isEphemeral && (await journal.threads.get(threadId))?.parent === undefined;
}

/** Ends a turn that no process runs; false: one does, or another process ended it first. */
export async function closeTurn(journal: Journal, turnId: string, end: AbandonedEnd): Promise<boolean> {
  const turn = await readOpenTurn(journal, turnId);
  if (turn === undefined) return false;
  const wait = end.waitsForLease === true;
  if (end.isHeldHere !== true && (await leaseStateOf(journal, turn.lease.holder, { wait })) !== "dead") return false;
  return closeAbandoned(journal, turn, end);
}

export async function closeParked(journal: Journal, threadId: string): Promise<void> {
  const last = await journal.threads.lastTurn(threadId);
  const message = "the approval was not answered, and another run has taken over the thread";
  const failure = { code: "turn.abandoned", message };
  if (last?.status === "open")
    await closeTurn(journal, last.id, { status: "interrupted", failure, waitsForLease: true });
}

export interface AbandonedEnd {
  readonly status: "interrupted" | "failed";
  readonly failure: Failure;
  /** This process holds the turn and does not run it. */
  readonly isHeldHere?: boolean;
  /** Waits until it is certain that a lease has expired. */
  readonly waitsForLease?: boolean;
}

/** Deletes ephemeral threads of dead runs; returns how many. */
export async function forgetEphemeral(journal: Journal, home: string): Promise<number> {
  if (journal.damage !== undefined) return 0;
  let forgotten = 0;
  for (const { id } of await journal.threads.ephemeral()) {
    if (!(await isOrphan(journal, id))) continue;
    try {
      await purgeThread(journal, { threadId: id, reason: "ephemeral", by: "system" });
      await removeFiles(home, id);
      forgotten += 1;
    } catch (error) {
      // Forked, or deleted by another process at this moment. It stays listed until it is deleted.
      if (!isHeddleError(error)) throw error;
    }
  }
  return forgotten;
}

/** Its last turn has ended, and the process that ran it is dead. */
async function isOrphan(journal: Journal, threadId: string): Promise<boolean> {
  const last = await journal.threads.lastTurn(threadId);
  if (last === undefined || last.status === "open") return false;
  // Closed by recovery: also when its host cannot be seen from here.
  if (last.failureCode === ABANDONED.failure.code) return true;
  const admitted = await eventAt(journal, threadId, last.admittedVersion);
  return admitted?.body.type === "turn.admitted" && stateOf(admitted.body.holder) === "dead";
}

async function closeAbandoned(journal: Journal, turn: OpenTurn, end: AbandonedEnd): Promise<boolean> {
  const { admitted, events } = turn;
  const left = await leftWith(journal, turn);
  try {
    await journal.append({
      stream: events[0]?.stream ?? "",
      author: "system",
      events: closingEvents(admitted, events, { ...end, left }),
      expectedVersion: events.at(-1)?.version ?? 0,
      key: terminalKey(admitted.turnId),
    });
    return true;
  } catch (error) {
    // Another process closed the same turn first: its terminal event stands.
    const isLate = isHeddleError(error) && ["store.version-conflict", "store.id-conflict"].includes(error.code);
    if (isLate) return false;
    throw error;
  }
}

/** An outside agent is in its envelope no longer than its turn. */
async function leftWith(journal: Journal, { admitted, events }: OpenTurn): Promise<readonly EventBody[]> {
  const threadId = events[0]?.stream ?? "";
  if (admitted.task !== "outside" || !events.some(({ body }) => body.type === "turn.started")) return [];
  const workspace = (await journal.threads.get(threadId))?.workspace;
  if (workspace === undefined) return [];
  return leavingEvents(journal, { threadId, turnId: admitted.turnId, workspace });
}

export function closingEvents(
  admitted: EventOf<"turn.admitted">,
  events: readonly StoredEvent[],
  { status, failure, left = [] }: AbandonedEnd & { readonly left?: readonly EventBody[] } = ABANDONED,
): readonly EventBody[] {
  const { turnId } = admitted;
  const loose = looseEnds(turnId, events);
  return [
    ...loose.events,
    ...left,
    {
      type: "turn.completed",
      v: 1,
      turnId,
      status,
      failure,
      usage: loose.usage,
      durationMs: Math.max(0, loose.lastAt - (events[0]?.at ?? loose.lastAt)),
    },
  ];
}

const ABANDONED: AbandonedEnd = {
  status: "interrupted",
  failure: {
    code: "turn.abandoned",
    message: "Heddle stopped while this turn ran; it was closed on the next start.",
  },
};

const RUN_OUT: AbandonedEnd = {
  status: "interrupted",
  failure: {
    code: "turn.abandoned",
    message: "The host that ran this turn has not renewed its lease; another one closed the turn.",
  },
};

export interface LooseEnds {
  /** Closes everything of the turn that is open. */
  readonly events: readonly EventBody[];
  readonly usage: Usage;
  readonly lastAt: number;
}

/** What a turn has begun and not ended. Pure. */
export function looseEnds(turnId: string, events: readonly StoredEvent[]): LooseEnds {
  const intents = new Map<string, EventOf<"tool.intended">>();
  const items = new Map<string, { item: Item; appended: string }>();
  const questions = new Set<string>();
  const agents = new Map<number, EventOf<"agent.started">>();
  let usage: Usage = NO_USAGE;
  let lastAt = 0;
  for (const { body, at } of events) {
    if (!("turnId" in body) || body.turnId !== turnId) continue;
    lastAt = at;
    if (body.type === "tool.intended") intents.set(body.itemId, body);
    else if (body.type === "tool.settled") intents.delete(body.itemId);
    else if (body.type === "item.started") items.set(body.item.id, { item: body.item, appended: "" });
    else if (body.type === "item.completed") items.delete(body.item.id);
    else if (body.type === "item.checkpointed") {
      const open = items.get(body.itemId);
      if (open !== undefined) open.appended += body.appended;
    } else if (body.type === "agent.started") agents.set(body.process.pid, body);
    else if (body.type === "agent.ended") agents.delete(body.pid);
    else if (body.type === "approval.requested") questions.add(body.approvalId);
    else if (body.type === "approval.resolved") questions.delete(body.approvalId);
    else if (body.type === "model.responded") usage = addUsage(usage, body.usage);
  }
  const closing = [
    ...untoldInput(turnId, events),
    ...[...questions].map((approvalId): EventBody => ({
      type: "approval.resolved",
      v: 1,
      turnId,
      approvalId,
      decision: "cancel",
      reason: "the turn was abandoned",
    })),
    ...[...intents.values()].map((intent): EventBody => unknownOutcome(intent)),
    ...[...agents.values()].map((agent): EventBody => leftAgent(agent)),
    ...[...items.values()].map(({ item, appended }): EventBody => ({
      type: "item.completed",
      v: 1,
      turnId,
      item: brokenOff(item, appended),
    })),
  ];
  return { events: closing, usage, lastAt };
}

/** Messages of the user that were admitted, and that the runner has not come to record. */
function untoldInput(turnId: string, events: readonly StoredEvent[]): readonly EventBody[] {
  const own = events.filter(({ body }) => "turnId" in body && body.turnId === turnId);
  const id = inputItemId(turnId);
  const isTold = own.some(({ body }) => body.type === "item.completed" && body.item.id === id);
  return [
    ...own.flatMap(({ body }) =>
      body.type === "turn.admitted" && body.input.length > 0 && !isTold
        ? userMessage(turnId, body.input, { ...saidOf(body), id })
        : [],
    ),
    ...pendingSteering(turnId, own).flatMap(({ body }) =>
      body.type === "turn.steered" ? userMessage(turnId, body.input, saidOf(body)) : [],
    ),
  ];
}
