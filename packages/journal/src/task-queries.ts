/** Questions about tasks and notifications, answered from projections. */
import type { TaskRecord, TaskState, WaitCause } from "@heddle/protocol";
import type { Connection } from "./driver.ts";
import { toNotification, toState } from "./projections/notifications.ts";
import { toTask } from "./projections/tasks.ts";
import { integer, optionalInteger, text } from "./rows.ts";

export interface NotificationRow {
  readonly id: string;
  readonly sink: string;
  /** TASK_VERIFIED … */
  readonly event: string;
  readonly taskId: string | undefined;
  /** Of the event it tells of. */
  readonly position: number;
  readonly state: "queued" | "delivered" | "dead";
  readonly tries: number;
  readonly nextAt: number | undefined;
  /** How the last try went. */
  readonly message: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Last put into the queue: when it happened, or when somebody asked for it again. */
  readonly queuedAt: number;
  readonly updatedAt: number;
}

export interface NotificationCount {
  readonly sink: string;
  readonly state: NotificationRow["state"];
  readonly count: number;
}

export interface TaskPageWish {
  readonly states?: readonly TaskState[];
  readonly workspace?: string;
  readonly label?: string;
  readonly parentId?: string;
  /** In the name; ASCII letters of either case are the same. */
  readonly text?: string;
  /** Newest first; behind this task. */
  readonly after?: string;
  readonly limit: number;
}

export interface TaskQueries {
  get(taskId: string): Promise<TaskRecord | undefined>;
  beginningWith(prefix: string, options: { readonly limit: number }): Promise<readonly TaskRecord[]>;
  /** Newest first. */
  named(name: string, options: { readonly limit: number }): Promise<readonly TaskRecord[]>;
  page(wish: TaskPageWish): Promise<readonly TaskRecord[]>;
  /** How many there are in each state. */
  counts(): Promise<Readonly<Partial<Record<TaskState, number>>>>;
  /** Nobody holds them, their time has come and their folder is free: highest priority first, then oldest. */
  due(
    now: number,
    /** `among`: only these, and what their schedules began. */
    options: { readonly limit: number; readonly among?: readonly string[] | undefined },
  ): Promise<readonly TaskRecord[]>;
  /** When the next one comes due after this time; undefined: none will by itself. */
  nextDue(after: number): Promise<number | undefined>;
  /** Those that a worker holds, or says it does. */
  held(): Promise<readonly TaskRecord[]>;
  /** Those of them that work in this folder; `onlyExclusive`: that mind others there. */
  heldIn(folder: string, options: { readonly onlyExclusive: boolean }): Promise<readonly TaskRecord[]>;
  /** Nobody holds them, and they wait for this. */
  waitingFor(cause: WaitCause): Promise<readonly TaskRecord[]>;
  /** They wait for a task that they know by one of these names. */
  dependents(names: readonly string[]): Promise<readonly TaskRecord[]>;
  ofThread(threadId: string): Promise<readonly TaskRecord[]>;
  /** The position of the newest event of the task. */
  lastPosition(taskId: string): Promise<number | undefined>;
}

export interface NotificationQueries {
  get(id: string): Promise<NotificationRow | undefined>;
  /** Newest first. */
  page(wish: {
    readonly sink?: string;
    readonly state?: NotificationRow["state"];
    readonly taskId?: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<readonly NotificationRow[]>;
  /**
   * What a sink may be sent next: `head`, the oldest that waits and was tried fewer than `tries` times, and `late`, of the
   * others the one whose time comes first.
   */
  next(
    sink: string,
    tries: number,
  ): Promise<{ readonly head: NotificationRow | undefined; readonly late: NotificationRow | undefined }>;
  /** How many there are of each sink in each state. */
  counts(): Promise<readonly NotificationCount[]>;
  /** How far the sink has read; undefined: it is new. */
  cursor(sink: string): Promise<number | undefined>;
}

type Read = <T>(work: (connection: Connection) => T) => Promise<T>;

/** Sorts after everything an id can go on with. */
const LAST = "\u{10FFFF}";

export function taskQueries(read: Read): TaskQueries {
  const tasks = (sql: string, ...values: (string | number)[]): Promise<readonly TaskRecord[]> =>
    read((connection) => connection.all(sql, ...values).map(toTask));
  return {
    get: async (taskId) => (await tasks("SELECT record FROM tasks WHERE id = ?", taskId))[0],
    beginningWith: (prefix, { limit }) =>
      tasks("SELECT record FROM tasks WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", prefix, `${prefix}${LAST}`, limit),
    named: (name, { limit }) =>
      tasks("SELECT record FROM tasks WHERE name = ? ORDER BY created_position DESC LIMIT ?", name, limit),
    page: (wish) => {
      const { where, values } = pageCondition(wish);
      return tasks(`SELECT record FROM tasks ${where} ORDER BY created_position DESC LIMIT ?`, ...values, wish.limit);
    },
    counts: () =>
      read((connection) =>
        Object.fromEntries(
          connection
            .all("SELECT state, count(*) AS number FROM tasks GROUP BY state")
            .map((row) => [text(row, "state"), integer(row, "number")]),
        ),
      ),
    due: (now, { limit, among }) =>
      tasks(
        // By its own index, in order: with any other, the whole queue is sorted for every look at its front.
        `SELECT record FROM tasks INDEXED BY tasks_queue
         WHERE next_at IS NOT NULL AND is_held = 0 AND next_at <= ?
           AND NOT EXISTS (SELECT 1 FROM tasks AS busy INDEXED BY tasks_held WHERE busy.is_held = 1 AND busy.workspace = tasks.workspace
             AND busy.is_exclusive = 1)
           AND (is_exclusive = 0 OR NOT EXISTS (SELECT 1 FROM tasks AS busy INDEXED BY tasks_held WHERE busy.is_held = 1
             AND busy.workspace = tasks.workspace))
           ${among === undefined ? "" : "AND (id IN (SELECT value FROM json_each(?)) OR parent_id IN (SELECT value FROM json_each(?)))"}
         ORDER BY priority DESC, created_position LIMIT ?`,
        now,
        ...(among === undefined ? [] : [JSON.stringify(among), JSON.stringify(among)]),
        limit,
      ),
    nextDue: (after) =>
      read((connection) => {
        const sql = "SELECT min(next_at) AS at FROM tasks WHERE next_at IS NOT NULL AND is_held = 0 AND next_at > ?";
        const row = connection.get(sql, after);
        return row === undefined ? undefined : optionalInteger(row, "at");
      }),
    held: () => tasks("SELECT record FROM tasks WHERE is_held = 1"),
    heldIn: (folder, { onlyExclusive }) =>
      tasks(
        "SELECT record FROM tasks WHERE is_held = 1 AND workspace = ? AND is_exclusive >= ?",
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

function pageCondition({ states, workspace, label, parentId, text: words, after }: TaskPageWish): {
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
  if (workspace !== undefined) add("json_extract(record, '$.spec.workspace') = ?", workspace);
  if (label !== undefined) add("EXISTS (SELECT 1 FROM json_each(record, '$.spec.labels') WHERE value = ?)", label);
  if (parentId !== undefined) add("parent_id = ?", parentId);
  if (words !== undefined) add("instr(lower(name), lower(?)) > 0", words);
  if (after !== undefined) add("created_position < (SELECT created_position FROM tasks WHERE id = ?)", after);
  return { where: conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`, values };
}

export function notificationQueries(read: Read): NotificationQueries {
  const rows = (sql: string, ...values: (string | number)[]): Promise<readonly NotificationRow[]> =>
    read((connection) => connection.all(sql, ...values).map(toNotification));
  return {
    get: async (id) => (await rows("SELECT * FROM notifications WHERE id = ?", id))[0],
    page: ({ sink, state, taskId, after, limit }) => {
      const asked = Object.entries({ sink, state, task_id: taskId }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      );
      const conditions = asked.map(([column]) => `${column} = ?`);
      const values = asked.map(([, value]) => value);
      // Ids sort by what they tell of.
      if (after !== undefined) {
        conditions.push("id < ?");
        values.push(after);
      }
      const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
      return rows(`SELECT * FROM notifications ${where} ORDER BY id DESC LIMIT ?`, ...values, limit);
    },
    next: async (sink, tries) => {
      const waiting = "SELECT * FROM notifications WHERE sink = ? AND state = 'queued'";
      const [head] = await rows(`${waiting} AND tries < ? ORDER BY subject_position, id LIMIT 1`, sink, tries);
      const [late] = await rows(`${waiting} AND tries >= ? ORDER BY next_at LIMIT 1`, sink, tries);
      return { head, late };
    },
    counts: () =>
      read((connection) =>
        connection
          .all("SELECT sink, state, count(*) AS count FROM notifications GROUP BY sink, state ORDER BY sink, state")
          .map((row) => ({ sink: text(row, "sink"), state: toState(row), count: integer(row, "count") })),
      ),
    cursor: (sink) =>
      read((connection) => {
        const row = connection.get("SELECT read_position FROM sinks WHERE name = ?", sink);
        return row === undefined ? undefined : integer(row, "read_position");
      }),
  };
}
