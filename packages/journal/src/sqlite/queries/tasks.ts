import type { TaskRecord } from "@heddle/protocol";
import { toTask } from "../../projections/tasks.ts";
import type { TaskPageRequest, TaskQueries } from "../../queries/tasks.ts";
import { integer, optionalInteger, text } from "../../record/rows.ts";
import type { Connection, Read } from "../driver.ts";
import { LAST_ID } from "./threads.ts";

const BUSY = `SELECT id FROM tasks WHERE is_held = 1
  AND (record ->> '$.openPrompt' IS NOT NULL OR record ->> '$.round' = 0)`;

const NEEDS_NOTHING_ELSE = `AND (record ->> '$.spec.needs' IS NULL OR NOT EXISTS (SELECT 1
  FROM json_each(record, '$.spec.needs') WHERE value NOT IN (SELECT value FROM json_each(?))))`;

const MEANT = `SELECT asked.value AS word, tasks.id, tasks.state FROM json_each(?) AS asked JOIN tasks ON tasks.id = coalesce(
  (SELECT id FROM tasks AS exact WHERE exact.id = asked.value),
  (SELECT id FROM tasks AS named WHERE named.name = asked.value ORDER BY created_position DESC LIMIT 1))`;

type Meant = Awaited<ReturnType<TaskQueries["meant"]>>;

function readMeant(connection: Connection, words: readonly string[]): Meant {
  return connection.all(MEANT, JSON.stringify(words)).map((row) => ({
    word: text(row, "word"),
    id: text(row, "id"),
    // Written by Heddle itself.
    state: text(row, "state") as TaskRecord["state"],
  }));
}

export function taskQueries(read: Read): TaskQueries {
  const tasks = (sql: string, ...values: (string | number)[]): Promise<readonly TaskRecord[]> =>
    read((connection) => connection.all(sql, ...values).map(toTask));
  return {
    get: async (taskId) => (await tasks("SELECT record FROM tasks WHERE id = ?", taskId))[0],
    beginningWith: (prefix, { limit }) =>
      tasks(
        "SELECT record FROM tasks WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        prefix,
        `${prefix}${LAST_ID}`,
        limit,
      ),
    named: (name, { limit }) =>
      tasks("SELECT record FROM tasks WHERE name = ? ORDER BY created_position DESC LIMIT ?", name, limit),
    meant: (words) => read((connection) => readMeant(connection, words)),
    page: (request) => {
      const { where, values } = pageCondition(request);
      return tasks(
        `SELECT record FROM tasks ${where} ORDER BY created_position DESC LIMIT ?`,
        ...values,
        request.limit,
      );
    },
    counts: (states) =>
      read((connection) =>
        Object.fromEntries(
          connection
            .all(
              `SELECT state, count(*) AS number FROM tasks
               ${states === undefined ? "" : "WHERE state IN (SELECT value FROM json_each(?))"} GROUP BY state`,
              ...(states === undefined ? [] : [JSON.stringify(states)]),
            )
            .map((row) => [text(row, "state"), integer(row, "number")]),
        ),
      ),
    due: (now, { limit, among, labels }) =>
      tasks(
        // By its own index, in order: any other would sort the whole queue each time.
        `SELECT record FROM tasks INDEXED BY tasks_queue
         WHERE next_at IS NOT NULL AND is_held = 0 AND next_at <= ?
           AND NOT EXISTS (SELECT 1 FROM tasks AS busy INDEXED BY tasks_held WHERE busy.is_held = 1 AND busy.folder = tasks.folder
             AND busy.is_exclusive = 1)
           AND (is_exclusive = 0 OR NOT EXISTS (SELECT 1 FROM tasks AS busy INDEXED BY tasks_held WHERE busy.is_held = 1
             AND busy.folder = tasks.folder))
           ${among === undefined ? "" : "AND (id IN (SELECT value FROM json_each(?)) OR parent_id IN (SELECT value FROM json_each(?)))"}
           ${labels === undefined ? "" : NEEDS_NOTHING_ELSE}
         ORDER BY priority DESC, created_position LIMIT ?`,
        now,
        ...(among === undefined ? [] : [JSON.stringify(among), JSON.stringify(among)]),
        ...(labels === undefined ? [] : [JSON.stringify(labels)]),
        limit,
      ),
    nextDue: (after) =>
      read((connection) => {
        const sql = "SELECT min(next_at) AS at FROM tasks WHERE next_at IS NOT NULL AND is_held = 0 AND next_at > ?";
        const row = connection.get(sql, after);
        return row === undefined ? undefined : optionalInteger(row, "at");
      }),
    held: () => tasks("SELECT record FROM tasks WHERE is_held = 1"),
    busy: () => read((connection) => new Set(connection.all(BUSY).map((row) => text(row, "id")))),
    heldIn: (folder, { onlyExclusive }) =>
      tasks(
        "SELECT record FROM tasks WHERE is_held = 1 AND folder = ? AND is_exclusive >= ?",
        folder,
        onlyExclusive ? 1 : 0,
      ),
    waitingFor: (cause) =>
      tasks("SELECT record FROM tasks WHERE wait_cause = ? AND is_held = 0 ORDER BY created_position", cause),
    dependents: (names) =>
      tasks(
        `SELECT record FROM tasks WHERE wait_cause = 'dependency' AND is_held = 0 AND EXISTS (SELECT 1
           FROM json_each(record, '$.spec.dependsOn') WHERE value IN (${names.map(() => "?").join(", ")}))
         ORDER BY created_position`,
        ...names,
      ),
    ofThread: (threadId) => tasks("SELECT record FROM tasks WHERE thread_id = ? ORDER BY created_position", threadId),
    lastPosition: (taskId) =>
      read((connection) => {
        const row = connection.get("SELECT updated_position FROM tasks WHERE id = ?", taskId);
        return row === undefined ? undefined : integer(row, "updated_position");
      }),
  };
}

function pageCondition({ states, workspace, label, parentId, text, after }: TaskPageRequest): {
  readonly where: string;
  readonly values: readonly (string | number)[];
} {
  const conditions: string[] = [];
  const values: (string | number)[] = [];
  const add = (condition: string, ...more: readonly (string | number)[]): void => {
    conditions.push(condition);
    values.push(...more);
  };
  if (states !== undefined) add(`state IN (${states.map(() => "?").join(", ")})`, ...states);
  if (workspace !== undefined) add("workspace = ?", workspace);
  if (label !== undefined) add("EXISTS (SELECT 1 FROM json_each(record, '$.spec.labels') WHERE value = ?)", label);
  if (parentId !== undefined) add("parent_id = ?", parentId);
  if (text !== undefined) add("instr(lower(name), lower(?)) > 0", text);
  if (after !== undefined) add("created_position < (SELECT created_position FROM tasks WHERE id = ?)", after);
  return { where: conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`, values };
}
