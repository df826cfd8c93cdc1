/** The state of a thread for a client that begins to follow it, from tables and its last turns. */
import { readGoal, readPlan } from "@heddle/agent";
import type { ThreadState } from "@heddle/dialects/codex-app-server";
import type { Journal } from "@heddle/journal";
import { addUsage, HeddleError, lessUsage, NO_USAGE, type StoredEvent, type Usage } from "@heddle/protocol";
import { turnEvents, turnsBackFrom } from "../turns/past-turns.ts";

export interface ReadState {
  readonly version: number;
  readonly state: ThreadState;
  /** From the last turn on that has ended and had an answer of a model. */
  readonly lastTurns: readonly StoredEvent[];
}

/** A thread that changes while it is read is read again, this often. */
const MAX_TRIES = 100;
/** Turns without an answer in a row; before them the usage is no longer looked for. */
const MAX_TURNS_BACK = 20;

export async function readThreadState(journal: Journal, threadId: string): Promise<ReadState> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const version = await journal.version(threadId);
    const read = await readOnce(journal, threadId);
    if ((await journal.version(threadId)) === version) return { version, ...read };
  }
  throw new HeddleError("store.busy", `thread ${threadId} changes faster than it can be read; try again`);
}

async function readOnce(journal: Journal, threadId: string): Promise<Omit<ReadState, "version">> {
  const row = await journal.threads.get(threadId);
  if (row === undefined) throw new HeddleError("thread.not-found", `no thread ${threadId}`);
  const lastTurns: StoredEvent[] = [];
  let looked = 0;
  for await (const turn of turnsBackFrom(journal, threadId)) {
    if (looked++ === MAX_TURNS_BACK) break;
    const events = await turnEvents(journal, turn);
    lastTurns.unshift(...events);
    // The usage of an answer is sent at the latest when its turn ends.
    const [hasAnswer, hasEnded] = ["model.responded", "turn.completed"].map((type) =>
      events.some(({ body }) => body.type === type),
    );
    if (hasAnswer === true && hasEnded === true) break;
  }
  const used = addUsage(row.usage, await inheritedUsage(journal, threadId));
  const state = {
    // Without the turns that are replayed.
    total: lessUsage(used, usageOf(lastTurns)),
    workspace: row.workspace,
    queued: (await journal.threads.queued(threadId)).map(({ turnId }) => turnId),
    goal: await readGoal(journal, threadId),
  };
  return { state, lastTurns };
}

async function inheritedUsage(journal: Journal, threadId: string): Promise<Usage> {
  const { parts } = await readPlan(journal, threadId);
  let total = NO_USAGE;
  for (const { stream, upTo } of parts.slice(0, -1)) {
    total = addUsage(total, (await journal.threads.usedUpTo(stream, upTo)).usage);
  }
  return total;
}

export function usageOf(events: readonly StoredEvent[]): Usage {
  return events.reduce((sum, { body }) => (body.type === "turn.completed" ? addUsage(sum, body.usage) : sum), NO_USAGE);
}
