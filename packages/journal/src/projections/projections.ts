/** The tables that answer questions. Each is a function of the events: written with them, and rebuilt from them. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection } from "../driver.ts";
import type { ThreadQueries } from "../journal.ts";
import { mentions } from "../mentions.ts";
import { EVENT_COLUMNS, toEvent } from "../rows.ts";
import { threadPage } from "../thread-page.ts";
import * as notifications from "./notifications.ts";
import * as queued from "./queued.ts";
import * as requests from "./requests.ts";
import * as sinks from "./sinks.ts";
import * as tasks from "./tasks.ts";
import * as threads from "./threads.ts";
import * as turns from "./turns.ts";
import * as usageDays from "./usage-days.ts";

const PROJECTIONS = [threads, turns, queued, tasks, notifications, sinks, usageDays, requests] as const;

/** Inside the transaction that stores the event. */
export function project(connection: Connection, event: StoredEvent): void {
  for (const projection of PROJECTIONS) projection.apply(connection, event);
}

export function createProjections(connection: Connection): void {
  for (const projection of PROJECTIONS) {
    connection.exec(`DROP TABLE IF EXISTS ${projection.table}`);
    connection.exec(projection.schema);
  }
}

/** Inside a transaction: readers see the old tables until the new ones are whole. */
export function rebuildAll(connection: Connection): void {
  createProjections(connection);
  const rows = connection.iterate(`SELECT ${EVENT_COLUMNS} FROM events WHERE body IS NOT NULL ORDER BY position`);
  for (const row of rows) project(connection, toEvent(row));
}

/** Sorts after everything an id can go on with. */
const LAST = "\u{10FFFF}";

export function threadQueries(read: <T>(work: (connection: Connection) => T) => Promise<T>): ThreadQueries {
  return {
    get: (threadId) =>
      read((connection) => {
        const row = connection.get(threads.queries.get, threadId);
        return row && threads.toThread(row);
      }),
    list: ({ workspace, limit }) =>
      read((connection) => {
        const rows =
          workspace === undefined
            ? connection.all(threads.queries.list, limit)
            : connection.all(threads.queries.listOfWorkspace, workspace, limit);
        return rows.map(threads.toThread);
      }),
    page: (wish) => read((connection) => threadPage(connection, wish)),
    isDeleted: (threadId) => read((connection) => connection.get(threads.queries.isDeleted, threadId) !== undefined),
    named: (name, { limit }) =>
      read((connection) => connection.all(threads.queries.named, name, limit).map(threads.toThread)),
    beginningWith: (prefix, { limit }) =>
      read((connection) =>
        connection.all(threads.queries.beginningWith, prefix, `${prefix}${LAST}`, limit).map(threads.toThread),
      ),
    forksOf: (threadId, { limit }) =>
      read((connection) => connection.all(threads.queries.forksOf, threadId, limit).map(threads.toThread)),
    turn: (turnId) =>
      read((connection) => {
        const row = connection.get(turns.queries.get, turnId);
        return row && turns.toTurn(row);
      }),
    turns: (threadId) => read((connection) => connection.all(turns.queries.ofThread, threadId).map(turns.toTurn)),
    queued: (threadId) =>
      read((connection) => {
        const rows =
          threadId === undefined
            ? connection.all(queued.queries.all)
            : connection.all(queued.queries.ofThread, threadId);
        return rows.map(queued.toQueued);
      }),
    ephemeral: () => read((connection) => connection.all(threads.queries.ephemeral).map(threads.toThread)),
    mentions: (look) => read((connection) => mentions(connection, look)),
    openTurns: () => read((connection) => connection.all(turns.queries.open).map(turns.toTurn)),
  };
}
