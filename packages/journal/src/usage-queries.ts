/** Questions about what models took, answered from the ledger. */
import type { Connection } from "./driver.ts";
import { SUMS, toSums, type UsageSums } from "./projections/usage-days.ts";
import { text } from "./rows.ts";

/** What can be told apart, and the column that does. */
const COLUMNS = {
  day: "day",
  provider: "provider",
  model: "model",
  workspace: "workspace",
  thread: "thread_id",
  task: "task_id",
} as const;
export type UsageKey = keyof typeof COLUMNS;
export const USAGE_KEYS = ["day", "provider", "model", "workspace", "thread", "task"] as const;

export interface UsageWish {
  readonly by: readonly UsageKey[];
  /** Days, both included: `2026-11-15`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Only of these. */
  readonly only?: Partial<Readonly<Record<UsageKey, string>>>;
  readonly limit: number;
  /** Rows to pass over. */
  readonly skip?: number;
}

export interface UsageRow extends UsageSums {
  /** Of what was asked to be told apart; empty: belongs to none, or to a thread that was deleted. */
  readonly of: Partial<Readonly<Record<UsageKey, string>>>;
}

export interface UsageQueries {
  /** Newest day first, then by the names. */
  rows(wish: UsageWish): Promise<readonly UsageRow[]>;
}

export function usageQueries(read: <T>(work: (connection: Connection) => T) => Promise<T>): UsageQueries {
  return {
    rows: ({ by, from, to, only = {}, limit, skip = 0 }) =>
      read((connection) => {
        const columns = by.map((key) => COLUMNS[key]);
        const asked: readonly (readonly [string, string | undefined])[] = [
          ["day >= ?", from],
          ["day <= ?", to],
          ...USAGE_KEYS.map((key) => [`${COLUMNS[key]} = ?`, only[key]] as const),
        ];
        const set = asked.filter((one): one is readonly [string, string] => one[1] !== undefined);
        const where = set.length === 0 ? "" : `WHERE ${set.map(([condition]) => condition).join(" AND ")}`;
        const order = columns.map((column) => (column === "day" ? "day DESC" : column));
        const rows = connection.all(
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
