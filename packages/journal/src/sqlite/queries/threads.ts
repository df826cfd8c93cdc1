import type { ThreadQueries } from "../../queries/threads.ts";
import type { Read } from "../driver.ts";
import { mentions } from "./mentions.ts";
import { threadPage } from "./thread-page.ts";
import { QUEUED, THREADS, toQueued, toThread, toTurn, TURNS } from "./thread-rows.ts";

/** Sorts after every continuation of an id. */
export const LAST_ID = "\u{10FFFF}";

export function threadQueries(read: Read): ThreadQueries {
  return {
    get: (threadId) =>
      read((connection) => {
        const row = connection.get(THREADS.get, threadId);
        return row && toThread(row);
      }),
    list: ({ workspace, limit }) =>
      read((connection) => {
        const rows =
          workspace === undefined
            ? connection.all(THREADS.list, limit)
            : connection.all(THREADS.listOfWorkspace, workspace, limit);
        return rows.map(toThread);
      }),
    page: (request) => read((connection) => threadPage(connection, request)),
    isDeleted: (threadId) => read((connection) => connection.get(THREADS.isDeleted, threadId) !== undefined),
    named: (name, { limit }) => read((connection) => connection.all(THREADS.named, name, limit).map(toThread)),
    beginningWith: (prefix, { limit }) =>
      read((connection) => connection.all(THREADS.beginningWith, prefix, `${prefix}${LAST_ID}`, limit).map(toThread)),
    forksOf: (threadId, { limit }) =>
      read((connection) => connection.all(THREADS.forksOf, threadId, limit).map(toThread)),
    turn: (turnId) =>
      read((connection) => {
        const row = connection.get(TURNS.get, turnId);
        return row && toTurn(row);
      }),
    turns: (threadId) => read((connection) => connection.all(TURNS.ofThread, threadId).map(toTurn)),
    lastTurn: (threadId, upTo = Number.MAX_SAFE_INTEGER) =>
      read((connection) => {
        const row = connection.get(TURNS.last, threadId, upTo);
        return row && toTurn(row);
      }),
    queued: (threadId) =>
      read((connection) => {
        const rows = threadId === undefined ? connection.all(QUEUED.all) : connection.all(QUEUED.ofThread, threadId);
        return rows.map(toQueued);
      }),
    ephemeral: () => read((connection) => connection.all(THREADS.ephemeral).map(toThread)),
    mentions: (look) => read((connection) => mentions(connection, look)),
    openTurns: () => read((connection) => connection.all(TURNS.open).map(toTurn)),
  };
}
