import type { QueuedRow, ThreadQueries, ThreadRow, TurnRow } from "../../queries/threads.ts";
import { integer } from "../../record/rows.ts";
import type { Read, Value } from "../driver.ts";
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
export function threadQueries(read: Read): ThreadQueries {
  const threads = (sql: string, ...values: Value[]): Promise<readonly ThreadRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toThread));
  const turns = (sql: string, ...values: Value[]): Promise<readonly TurnRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toTurn));
  const queued = (sql: string, ...values: Value[]): Promise<readonly QueuedRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toQueued));
  return {
    get: async (threadId) => (await threads(THREADS.get, threadId))[0],
    list: ({ workspace, limit, withChildren = false }) =>
      workspace === undefined
        ? threads(listThreads("", withChildren), limit)
        : threads(listThreads("workspace = ? AND", withChildren), workspace, limit),
    childrenOf: (threadId, { limit }) => threads(THREADS.childrenOf, threadId, limit),
    async page(request) {
      const { threadPage } = await import("./thread-page.ts");
      return read((connection) => threadPage(connection, request));
    },
    isDeleted: (threadId) => read((connection) => connection.get(THREADS.isDeleted, threadId) !== undefined),
    named: (name, { limit }) => threads(THREADS.named, name, limit),
    agentsNamed: (name, { limit }) => threads(THREADS.agentsNamed, name, limit),
    beginningWith: (prefix, { limit }) => threads(THREADS.beginningWith, prefix, `${prefix}${LAST_ID}`, limit),
    forksOf: (threadId, { limit }) => threads(THREADS.forksOf, threadId, limit),
    turn: async (turnId) => (await turns(TURNS.get, turnId))[0],
    turns: (threadId) => turns(TURNS.ofThread, threadId),
    lastTurn: async (threadId, upTo = Number.MAX_SAFE_INTEGER) => (await turns(TURNS.last, threadId, upTo))[0],
    usedUpTo: (threadId, version) =>
      read((connection) => toUsed(connection.get(TURNS.used, threadId, version, version))),
    envelope: (threadId) => read((connection) => connection.all(THREAD_ENVELOPE, threadId).map(toThreadEnvelope).at(0)),
    queued: (threadId) => (threadId === undefined ? queued(QUEUED.all) : queued(QUEUED.ofThread, threadId)),
    ephemeral: () => threads(THREADS.ephemeral),
    async mentions(look) {
      const { mentions } = await import("./mentions.ts");
      return read((connection) => mentions(connection, look));
    },
    openItems: (threadIds) =>
      read((connection) => connection.all(OPEN.items, JSON.stringify(threadIds)).map(toOpenItem)),
    openApprovals: (threadId) =>
      read((connection) =>
        (threadId === undefined
          ? connection.all(OPEN.approvals)
          : connection.all(OPEN.approvalsOfThread, threadId)
        ).map(toOpenApproval),
      ),
    itemStarts: (threadId, { before, limit }) =>
      read((connection) =>
        connection
          .all(OPEN.itemStarts, threadId, before, limit)
          .map((row) => integer(row, "version"))
          .toReversed(),
      ),
    openTurns: () => turns(TURNS.open),
  };
}
