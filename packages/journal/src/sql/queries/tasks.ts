import type { TaskRecord } from "@heddle/protocol";
import { toTask } from "../../projections/tasks.ts";
import type { TaskPageRequest, TaskQueries } from "../../queries/tasks.ts";
import { integer, optionalInteger, text, type Row } from "../../record/rows.ts";
import { get, rowsAs, type Ask, type Value } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import { LAST_ID } from "./threads.ts";

const busySql = ({ member }: Dialect): string => `SELECT id FROM tasks WHERE is_held = 1
  AND (${member("record", ["openPrompt"])} IS NOT NULL OR ${member("record", ["round"])} = '0')`;

const needsNothingElse = ({
  each,
  eachIn,
  member,
}: Dialect): string => `AND (${member("record", ["spec", "needs"])} IS NULL OR NOT EXISTS (SELECT 1
  FROM ${eachIn("record", ["spec", "needs"], "needed")} WHERE needed.value NOT IN (SELECT value FROM ${each("?", "had")})))`;

const meantSql = ({
  each,
}: Dialect): string => `SELECT asked.value AS word, tasks.id, tasks.state FROM ${each("?", "asked")} JOIN tasks ON tasks.id = coalesce(
  (SELECT id FROM tasks AS exact WHERE exact.id = asked.value),
  (SELECT id FROM tasks AS named WHERE named.name = asked.value ORDER BY created_position DESC LIMIT 1))`;

function dueSql(dialect: Dialect, { isAmong, isLabelled }: { isAmong: boolean; isLabelled: boolean }): string {
  const { by, each } = dialect;
  const asked = `SELECT value FROM ${each("?", "asked")}`;
  // By its own index, in order: any other would sort the whole queue each time.
  return `SELECT record FROM tasks${by("tasks_queue")}
         WHERE next_at IS NOT NULL AND is_held = 0 AND next_at <= ?
           AND NOT EXISTS (SELECT 1 FROM tasks AS busy${by("tasks_held")} WHERE busy.is_held = 1 AND busy.folder = tasks.folder
             AND busy.is_exclusive = 1)
           AND (is_exclusive = 0 OR NOT EXISTS (SELECT 1 FROM tasks AS busy${by("tasks_held")} WHERE busy.is_held = 1
             AND busy.folder = tasks.folder))
           ${isAmong ? `AND (id IN (${asked}) OR parent_id IN (${asked}))` : ""}
           ${isLabelled ? needsNothingElse(dialect) : ""}
         ORDER BY priority DESC, created_position LIMIT ?`;
}

function toMeant(row: Row): Awaited<ReturnType<TaskQueries["meant"]>>[number] {
  // Written by Heddle itself.
  const state = text(row, "state") as TaskRecord["state"];
  return { word: text(row, "word"), id: text(row, "id"), state };
}

export function taskQueries(ask: Ask, dialect: Dialect): TaskQueries {
  const tasks = (sql: string, ...values: Value[]): Promise<readonly TaskRecord[]> =>
    ask(() => rowsAs(sql, toTask, ...values));
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
    meant: (words) => ask(() => rowsAs(meantSql(dialect), toMeant, JSON.stringify(words))),
    page: (request) => {
      const { where, values } = pageCondition(request, dialect);
      return tasks(
        `SELECT record FROM tasks ${where} ORDER BY created_position DESC LIMIT ?`,
        ...values,
        request.limit,
      );
    },
    counts: (states) =>
      ask(function* () {
        const only = states === undefined ? "" : `WHERE state IN (SELECT value FROM ${dialect.each("?", "asked")})`;
        const counted = yield* rowsAs(
          `SELECT state, count(*) AS number FROM tasks ${only} GROUP BY state`,
          (row) => [text(row, "state"), integer(row, "number")] as const,
          ...(states === undefined ? [] : [JSON.stringify(states)]),
        );
        return Object.fromEntries(counted);
      }),
    due: (now, { limit, among, labels }) =>
      tasks(
        dueSql(dialect, { isAmong: among !== undefined, isLabelled: labels !== undefined }),
        now,
        ...(among === undefined ? [] : [JSON.stringify(among), JSON.stringify(among)]),
        ...(labels === undefined ? [] : [JSON.stringify(labels)]),
        limit,
      ),
    nextDue: (after) =>
      ask(function* () {
        const sql = "SELECT min(next_at) AS at FROM tasks WHERE next_at IS NOT NULL AND is_held = 0 AND next_at > ?";
        const row = yield* get(sql, after);
        return row === undefined ? undefined : optionalInteger(row, "at");
      }),
    held: () => tasks("SELECT record FROM tasks WHERE is_held = 1"),
    busy: () =>
      ask(function* () {
        return new Set(yield* rowsAs(busySql(dialect), (row) => text(row, "id")));
      }),
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
           FROM ${dialect.eachIn("record", ["spec", "dependsOn"], "needed")} WHERE value IN (${names.map(() => "?").join(", ")}))
         ORDER BY created_position`,
        ...names,
      ),
    ofThread: (threadId) => tasks("SELECT record FROM tasks WHERE thread_id = ? ORDER BY created_position", threadId),
    lastPosition: (taskId) =>
      ask(function* () {
        const row = yield* get("SELECT updated_position FROM tasks WHERE id = ?", taskId);
        return row === undefined ? undefined : integer(row, "updated_position");
      }),
  };
}

function pageCondition(
  { states, workspace, label, parentId, text, after }: TaskPageRequest,
  { contains, eachIn }: Dialect,
): {
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
  if (label !== undefined)
    add(`EXISTS (SELECT 1 FROM ${eachIn("record", ["spec", "labels"], "label")} WHERE value = ?)`, label);
  if (parentId !== undefined) add("parent_id = ?", parentId);
  if (text !== undefined) add(contains("name", "?"), text);
  if (after !== undefined) add("created_position < (SELECT created_position FROM tasks WHERE id = ?)", after);
  return { where: conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`, values };
}
