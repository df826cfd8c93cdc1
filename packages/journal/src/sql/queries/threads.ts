import type { QueuedRow, ThreadQueries, ThreadRow, TurnRow } from "../../queries/threads.ts";
import { integer, type Row } from "../../record/rows.ts";
import { get, rowsAs, type Ask, type Value } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import { THREAD_ENVELOPE, toThreadEnvelope } from "./thread-envelopes.ts";
import {
  listThreads,
  OPEN,
  QUEUED,
  THREADS,
  toOpenApproval,
  toOpenItem,
  toQueued,
  toThread,
  toTurn,
  toUsed,
  TURNS,
} from "./thread-rows.ts";

/** Sorts after every continuation of an id. */
export const LAST_ID = "\u{10FFFF}";

/** What lists and searches need is loaded by them: a run that makes a thread does neither. */
export function threadQueries(ask: Ask, dialect: Dialect): ThreadQueries {
  const threads = (sql: string, ...values: Value[]): Promise<readonly ThreadRow[]> =>
    ask(() => rowsAs(sql, toThread, ...values));
  const turns = (sql: string, ...values: Value[]): Promise<readonly TurnRow[]> =>
    ask(() => rowsAs(sql, toTurn, ...values));
  const queued = (sql: string, ...values: Value[]): Promise<readonly QueuedRow[]> =>
    ask(() => rowsAs(sql, toQueued, ...values));
  return {
    get: async (threadId) => (await threads(THREADS.get, threadId))[0],
    list: ({ workspace, limit, withChildren = false }) =>
      workspace === undefined
        ? threads(listThreads("", withChildren), limit)
        : threads(listThreads("workspace = ? AND", withChildren), workspace, limit),
    childrenOf: (threadId, { limit }) => threads(THREADS.childrenOf, threadId, limit),
    async page(request) {
      const { threadPage } = await import("./thread-page.ts");
      return await ask(() => threadPage(request, dialect));
    },
    isDeleted: (threadId) =>
      ask(function* () {
        return (yield* get(THREADS.isDeleted, threadId)) !== undefined;
      }),
    named: (name, { limit }) => threads(THREADS.named, name, limit),
    agentsNamed: (name, { limit }) => threads(THREADS.agentsNamed, name, limit),
    beginningWith: (prefix, { limit }) => threads(THREADS.beginningWith, prefix, `${prefix}${LAST_ID}`, limit),
    forksOf: (threadId, { limit }) => threads(THREADS.forksOf, threadId, limit),
    turn: async (turnId) => (await turns(TURNS.get, turnId))[0],
    turns: (threadId) => turns(TURNS.ofThread, threadId),
    lastTurn: async (threadId, upTo = Number.MAX_SAFE_INTEGER) => (await turns(TURNS.last, threadId, upTo))[0],
    usedUpTo: (threadId, version) =>
      ask(function* () {
        return toUsed(yield* get(TURNS.used, threadId, version, version));
      }),
    envelope: async (threadId) => (await ask(() => rowsAs(THREAD_ENVELOPE, toThreadEnvelope, threadId)))[0],
    queued: (threadId) => (threadId === undefined ? queued(QUEUED.all) : queued(QUEUED.ofThread, threadId)),
    ephemeral: () => threads(THREADS.ephemeral),
    async mentions(look) {
      const { mentions } = await import("./mentions.ts");
      return await ask(() => mentions(look, dialect));
    },
    openItems: (threadIds) => ask(() => rowsAs(OPEN.items(dialect), toOpenItem, JSON.stringify(threadIds))),
    openApprovals: (threadId) =>
      ask(() =>
        threadId === undefined
          ? rowsAs(OPEN.approvals, toOpenApproval)
          : rowsAs(OPEN.approvalsOfThread, toOpenApproval, threadId),
      ),
    itemStarts: async (threadId, { before, limit }) => {
      const version = (row: Row): number => integer(row, "version");
      return (await ask(() => rowsAs(OPEN.itemStarts, version, threadId, before, limit))).toReversed();
    },
    turnsSince: async (at) => {
      const [count = 0] = await ask(() => rowsAs(TURNS_SINCE, (row) => integer(row, "number"), firstTurnId(at)));
      return count;
    },
    openTurns: () => turns(TURNS.open),
  };
}

const TURNS_SINCE = "SELECT count(*) AS number FROM turns WHERE id >= ?";

/** The lowest UUIDv7 of a time: 48 bits of milliseconds, then its version. */
function firstTurnId(at: number): string {
  const digits = at.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7`;
}
