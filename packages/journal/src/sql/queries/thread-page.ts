/** One page of threads, sorted and filtered by the database, so that a list costs the same at any offset. */
import { rowsAs, type Asking } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import type { ThreadPageRequest, ThreadRow } from "../../queries/threads.ts";
import { COLUMNS, toThread } from "./thread-rows.ts";

const SORT = { createdAt: "created_at", updatedAt: "updated_at" } as const;

export function* threadPage(request: ThreadPageRequest, { each, contains }: Dialect): Asking<readonly ThreadRow[]> {
  const among = `(SELECT value FROM ${each("?", "asked")})`;
  const { from, workspaces, providers, origin, parentId, excludedIds = [], text } = request;
  const key = SORT[request.sortBy];
  const where = [
    "deleted_at IS NULL AND is_ephemeral IS NULL",
    "(turn_count > 0 OR forked_from IS NOT NULL)",
    `is_archived IS ${request.isArchived ? "NOT NULL" : "NULL"}`,
  ];
  const given: (string | number)[] = [];
  const add = (sql: string, ...values: readonly (string | number)[]): void => {
    where.push(sql);
    given.push(...values);
  };
  if (parentId === undefined) add("parent_thread IS NULL");
  else add("parent_thread = ?", parentId);
  if (workspaces !== undefined) add(`workspace IN ${among}`, JSON.stringify(workspaces));
  if (providers !== undefined) add(`provider IN ${among}`, JSON.stringify(providers));
  if (excludedIds.length > 0) add(`id NOT IN ${among}`, JSON.stringify(excludedIds));
  if (origin !== undefined) {
    add(`substr(origin, 1, length(?)) ${origin.begins ? "=" : "<>"} ?`, origin.prefix, origin.prefix);
  }
  if (text !== undefined && text !== "") {
    // Not LIKE: its patterns have a limit.
    add(`(${contains("name", "?")} OR ${contains("preview", "?")})`, text, text);
  }
  const isDown = request.direction === "desc";
  if (from !== undefined) {
    const sign = `${isDown ? "<" : ">"}${from.isIncluded ? "=" : ""}`;
    add(`(${key}, id) ${sign} (?, ?)`, from.thread[request.sortBy], from.thread.id);
  }
  const order = isDown ? "DESC" : "ASC";
  const sql = `SELECT ${COLUMNS} FROM threads WHERE ${where.join(" AND ")} ORDER BY ${key} ${order}, id ${order} LIMIT ?`;
  return yield* rowsAs(sql, toThread, ...given, request.limit);
}
