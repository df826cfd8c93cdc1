/**
 * Every turn whose holder is dead (`holder.ts`) gets its one terminal event, and with it everything left hanging:
 *   an intent without a result  → tool.settled `unknown` (never run again by itself)
 *   a started item              → item.completed with what its checkpoints kept
 *   an unanswered question      → approval.resolved `cancel`, unless it is all that is left: then the turn is parked
 * All in one transaction on the version that was read, so that two recovering processes cannot both do it.
 * Threads that were to be deleted with their run are deleted when that run is dead.
 */
import {
  isHeddleError,
  never,
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
import { OUTCOME_UNKNOWN } from "../context/context.ts";
import { leaseStateOf, stateOf } from "./holder.ts";
import { leaseOf, waitingQuestions, type WaitingQuestions } from "../approvals/parked.ts";
import { eventAt } from "../threads/past.ts";
import { readStream } from "../threads/stored-events.ts";
import { terminalKey } from "../turns/terminal.ts";
import { purgeThread, removeFiles } from "../threads/threads.ts";

export interface Recovered {
  /** How many abandoned turns were closed. */
  readonly closed: number;
  /** Turns that wait for an answer, or have one that nobody has acted on. */
  readonly parked: readonly ParkedTurn[];
}

export interface ParkedTurn {
  readonly threadId: string;
  readonly turnId: string;
  readonly questions: WaitingQuestions;
}

/**
 * Closes abandoned turns. A turn of a live process is left alone, and so is one that only waits for an answer. `isElsewhere`:
 * only of processes that cannot be seen from here.
 */
export async function recover(journal: Journal, { isElsewhere = false } = {}): Promise<Recovered> {
  if (journal.damage !== undefined) return { closed: 0, parked: [] };
  let closed = 0;
  const parked: ParkedTurn[] = [];
  for (const { subject: turnId, stream: threadId, holder } of await journal.leases.held()) {
    const isTask = turnId === threadId;
    const isSeen = stateOf(holder) !== "unknown";
    if (isTask || (isElsewhere && isSeen) || (await leaseStateOf(journal, holder)) !== "dead") continue;
    const turn = await journal.threads.turn(turnId);
    if (turn === undefined) continue;
    const events = await readStream(journal, threadId, { after: turn.admittedVersion - 1 });
    const admitted = events[0]?.body;
    if (admitted?.type !== "turn.admitted") continue;
    const questions = waitingQuestions(turnId, events);
    if (questions !== undefined && !(await isEphemeral(journal, threadId))) {
      parked.push({ threadId, turnId, questions });
      continue;
    }
    failpoint("recover.before-turn");
    const end = isSeen ? ABANDONED : RUN_OUT;
    if (await closeAbandoned(journal, threadId, admitted, { events, end })) closed += 1;
    failpoint("recover.after-turn");
  }
  return { closed, parked };
}

/** It is to leave no trace, so nobody can come back to it. */
export async function isEphemeral(journal: Journal, threadId: string): Promise<boolean> {
  return (await journal.threads.ephemeral()).some(({ id }) => id === threadId);
}

/** Ends a turn that nobody runs; false: somebody does, or somebody else was faster. */
export async function closeParked(
  journal: Journal,
  { threadId, turnId }: { readonly threadId: string; readonly turnId: string },
  end: AbandonedEnd,
): Promise<boolean> {
  const row = await journal.threads.turn(turnId);
  if (row === undefined || row.status !== "open") return false;
  const events = await readStream(journal, threadId, { after: row.admittedVersion - 1 });
  const admitted = events[0]?.body;
  const holder = leaseOf(turnId, events)?.holder;
  if (admitted?.type !== "turn.admitted" || holder === undefined) return false;
  const wait = end.waitsForLease === true;
  if (end.isHeldHere !== true && (await leaseStateOf(journal, holder, { wait })) !== "dead") return false;
  return closeAbandoned(journal, threadId, admitted, { events, end });
}

export interface AbandonedEnd {
  readonly status: "interrupted" | "failed";
  readonly failure: Failure;
  /** This process holds the turn and does not run it. */
  readonly isHeldHere?: boolean;
  /** A lease that seems to have run out is waited for until that is certain. */
  readonly waitsForLease?: boolean;
}

/** Deletes what dead runs promised to leave no trace of; answers how many threads that were. */
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
      // Forked, or deleted by another process at this moment. It stays on the list until it is gone.
      if (!isHeddleError(error)) throw error;
    }
  }
  return forgotten;
}

/** Its last turn has ended, or there was none, and whoever ran it is dead. */
async function isOrphan(journal: Journal, threadId: string): Promise<boolean> {
  const last = await journal.threads.lastTurn(threadId);
  if (last === undefined || last.status === "open") return false;
  // Closed by whoever found it: also when its host cannot be seen from here.
  if (last.failureCode === ABANDONED.failure.code) return true;
  const admitted = await eventAt(journal, threadId, last.admittedVersion);
  return admitted?.body.type === "turn.admitted" && stateOf(admitted.body.holder) === "dead";
}

async function closeAbandoned(
  journal: Journal,
  threadId: string,
  admitted: EventOf<"turn.admitted">,
  { events, end }: { readonly events: readonly StoredEvent[]; readonly end?: AbandonedEnd },
): Promise<boolean> {
  try {
    await journal.append({
      stream: threadId,
      author: "system",
      events: closingEvents(admitted, events, end),
      expectedVersion: events.at(-1)?.version ?? 0,
      key: terminalKey(admitted.turnId),
    });
    return true;
  } catch (error) {
    // Another process recovered the same turn first: its terminal event stands.
    if (isHeddleError(error) && (error.code === "store.version-conflict" || error.code === "store.id-conflict")) {
      return false;
    }
    throw error;
  }
}

/** The events that bring an abandoned turn to its end. Pure. */
export function closingEvents(
  admitted: EventOf<"turn.admitted">,
  events: readonly StoredEvent[],
  { status, failure }: AbandonedEnd = ABANDONED,
): readonly EventBody[] {
  const { turnId } = admitted;
  const loose = looseEnds(turnId, events);
  return [
    ...loose.events,
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
  /** What closes everything of the turn that stands open. */
  readonly events: readonly EventBody[];
  readonly usage: Usage;
  readonly lastAt: number;
}

/** What a turn has begun and not ended, as the journal tells it. Pure. */
export function looseEnds(turnId: string, events: readonly StoredEvent[]): LooseEnds {
  const intents = new Map<string, EventOf<"tool.intended">>();
  const items = new Map<string, { item: Item; appended: string }>();
  const questions = new Set<string>();
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
    } else if (body.type === "approval.requested") questions.add(body.approvalId);
    else if (body.type === "approval.resolved") questions.delete(body.approvalId);
    else if (body.type === "model.responded") usage = addUsage(usage, body.usage);
  }
  const closing = [
    ...[...questions].map((approvalId): EventBody => ({
      type: "approval.resolved",
      v: 1,
      turnId,
      approvalId,
      decision: "cancel",
      reason: "the turn was abandoned",
    })),
    ...[...intents.values()].map((intent): EventBody => unknownOutcome(intent)),
    ...[...items.values()].map(({ item, appended }): EventBody => ({
      type: "item.completed",
      v: 1,
      turnId,
      item: brokenOff(item, appended),
    })),
  ];
  return { events: closing, usage, lastAt };
}

/** A call that began, and nobody can say how far it came. */
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

/** A started item as it stood when nobody could finish it. */
export function brokenOff(item: Item, appended: string, status: "unknown" | "interrupted" = "unknown"): Item {
  switch (item.type) {
    case "userMessage":
    case "notice":
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
    case "plan":
    case "imageView":
    case "contextCompaction":
      return { ...item, status };
    default:
      return never(item);
  }
}
