import type { QueuedRow, ThreadQueries, ThreadRow, TurnRow } from "../../queries/threads.ts";
import type { Read, Value } from "../driver.ts";
import { mentions } from "./mentions.ts";
import { threadPage } from "./thread-page.ts";
import { QUEUED, THREADS, toQueued, toThread, toTurn, TURNS } from "./thread-rows.ts";

/** Sorts after every continuation of an id. */
export const LAST_ID = "\u{10FFFF}";

export function threadQueries(read: Read): ThreadQueries {
  const threads = (sql: string, ...values: Value[]): Promise<readonly ThreadRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toThread));
  const turns = (sql: string, ...values: Value[]): Promise<readonly TurnRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toTurn));
  const queued = (sql: string, ...values: Value[]): Promise<readonly QueuedRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toQueued));
  return {
    get: async (threadId) => (await threads(THREADS.get, threadId))[0],
    list: ({ workspace, limit }) =>
      workspace === undefined ? threads(THREADS.list, limit) : threads(THREADS.listOfWorkspace, workspace, limit),
    page: (request) => read((connection) => threadPage(connection, request)),
    isDeleted: (threadId) => read((connection) => connection.get(THREADS.isDeleted, threadId) !== undefined),
    named: (name, { limit }) => threads(THREADS.named, name, limit),
    beginningWith: (prefix, { limit }) => threads(THREADS.beginningWith, prefix, `${prefix}${LAST_ID}`, limit),
    forksOf: (threadId, { limit }) => threads(THREADS.forksOf, threadId, limit),
    turn: async (turnId) => (await turns(TURNS.get, turnId))[0],
    turns: (threadId) => turns(TURNS.ofThread, threadId),
    lastTurn: async (threadId, upTo = Number.MAX_SAFE_INTEGER) => (await turns(TURNS.last, threadId, upTo))[0],
    queued: (threadId) => (threadId === undefined ? queued(QUEUED.all) : queued(QUEUED.ofThread, threadId)),
    ephemeral: () => threads(THREADS.ephemeral),
    mentions: (look) => read((connection) => mentions(connection, look)),
    openTurns: () => turns(TURNS.open),
  };
}
