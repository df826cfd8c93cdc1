import type { EventOf } from "@heddle/protocol";
import { SUM_COLUMNS, toSums } from "../../projections/usage-days.ts";
import { USAGE_KEYS, type UsageQueries } from "../../queries/usage.ts";
import { text } from "../../record/rows.ts";
import { all, rowsAs, type Ask, type Asking } from "../ask.ts";
import type { Dialect } from "../dialect.ts";

const COLUMNS = {
  day: "day",
  provider: "provider",
  model: "model",
  workspace: "workspace",
  thread: "thread_id",
  task: "task_id",
} as const;
const SUMS = SUM_COLUMNS.map((column) => `sum(${column}) AS ${column}`).join(", ");

const ofThreads = ({ each }: Dialect): string => `SELECT thread_id, ${SUMS} FROM usage_days
  WHERE thread_id IN (SELECT value FROM ${each("?", "asked")}) GROUP BY thread_id`;

export function usageQueries(ask: Ask, dialect: Dialect): UsageQueries {
  return {
    ofThreads: (threadIds) =>
      ask(() =>
        rowsAs(
          ofThreads(dialect),
          (row) => ({ threadId: text(row, "thread_id"), ...toSums(row) }),
          JSON.stringify(threadIds),
        ),
      ),
    rows: ({ by, from, to, only = {}, limit, skip = 0 }) =>
      ask(function* () {
        const columns = by.map((key) => COLUMNS[key]);
        const asked: readonly (readonly [string, string | undefined])[] = [
          ["day >= ?", from],
          ["day <= ?", to],
          ...USAGE_KEYS.map((key) => [`${COLUMNS[key]} = ?`, only[key]] as const),
        ];
        const set = asked.filter((one): one is readonly [string, string] => one[1] !== undefined);
        const where = set.length === 0 ? "" : `WHERE ${set.map(([condition]) => condition).join(" AND ")}`;
        const order = columns.map((column) => (column === "day" ? "day DESC" : column));
        const rows = yield* all(
          `SELECT ${[...columns, SUMS].join(", ")} FROM usage_days ${where}
           ${columns.length === 0 ? "HAVING count(*) > 0" : `GROUP BY ${columns.join(", ")} ORDER BY ${order.join(", ")}`}
           LIMIT ? OFFSET ?`,
          ...set.map(([, value]) => value),
          limit,
          skip,
        );
        return rows.map((row) => ({
          of: Object.fromEntries(by.map((key) => [key, text(row, COLUMNS[key])])),
          ...toSums(row),
        }));
      }),
  };
}

type Kept = NonNullable<EventOf<"thread.deleted">["usage"]>[number];

export function* usedBy(threadId: string): Asking<readonly Kept[]> {
  const rows = yield* all(
    `SELECT day, provider, model, task_id, ${SUMS} FROM usage_days WHERE thread_id = ?
     GROUP BY day, provider, model, task_id ORDER BY day, provider, model, task_id`,
    threadId,
  );
  return rows.map((row) => ({
    day: text(row, "day"),
    provider: text(row, "provider"),
    model: text(row, "model"),
    ...(text(row, "task_id") === "" ? {} : { taskId: text(row, "task_id") }),
    ...toSums(row),
  }));
}
