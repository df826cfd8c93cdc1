/**
 * The ledger: what models took, by day (UTC), provider, model, workspace, thread and task. Every answer is counted once,
 * on the day it came. A deleted thread says in its last event what it took, so that the sums stay; where it worked is gone.
 */
import { NO_USAGE, type EventOf, type StoredEvent, type Usage } from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import { integer, text } from "../rows.ts";

export const table = "usage_days";

export const schema = `
CREATE TABLE usage_days (
  day TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  workspace TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  requests INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  cache_write_input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_output_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  PRIMARY KEY (day, provider, model, workspace, thread_id, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_thread ON usage_days (thread_id);
CREATE INDEX usage_days_by_task ON usage_days (task_id);
`;

type Kept = NonNullable<EventOf<"thread.deleted">["usage"]>[number];

export function apply(connection: Connection, { stream, at, body }: StoredEvent): void {
  switch (body.type) {
    case "model.responded": {
      const { requestId, usage, costUsd } = body;
      const request = connection.get("SELECT provider, model, task_id FROM open_requests WHERE id = ?", requestId);
      const [provider, model, taskId] = ["provider", "model", "task_id"].map((name) =>
        request === undefined ? "" : text(request, name),
      ) as [string, string, string];
      add(connection, stream, { day: dayOf(at), provider, model, taskId, ...took(usage, costUsd) });
      return;
    }
    case "background.ran": {
      // One that failed before it was answered took nothing that is known of.
      if (body.outcome === "failed" && totalOf(body.usage) === 0) return;
      const { provider, model, usage, costUsd } = body;
      add(connection, stream, { day: dayOf(at), provider, model, taskId: "", ...took(usage, costUsd) });
      return;
    }
    case "task.checked":
      // Asked for in a thread of its own, and known to be the task's only now.
      if (body.opinion?.threadId !== undefined) {
        const move = "UPDATE OR REPLACE usage_days SET task_id = ?, workspace = ? WHERE thread_id = ? AND task_id = ''";
        connection.run(move, stream, workspaceOf(connection, "", stream), body.opinion.threadId);
      }
      return;
    case "thread.deleted":
      connection.run("DELETE FROM usage_days WHERE thread_id = ?", stream);
      for (const kept of body.usage ?? []) add(connection, "", { ...kept, taskId: kept.taskId ?? "" });
      return;
    default:
  }
}

/** What a thread took, for the event that ends it. */
export function takenBy(connection: Connection, threadId: string): readonly Kept[] {
  const rows = connection.all(
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

export const SUMS = `sum(requests) AS requests, sum(unpriced) AS unpriced, sum(input_tokens) AS input_tokens,
  sum(cached_input_tokens) AS cached_input_tokens, sum(cache_write_input_tokens) AS cache_write_input_tokens,
  sum(output_tokens) AS output_tokens, sum(reasoning_output_tokens) AS reasoning_output_tokens,
  sum(cost_usd) AS cost_usd`;

export interface UsageSums {
  readonly requests: number;
  /** Of these requests the price is not known. */
  readonly unpriced: number;
  readonly usage: Usage;
  readonly costUsd: number;
}

export function toSums(row: Row): UsageSums {
  return {
    requests: integer(row, "requests"),
    unpriced: integer(row, "unpriced"),
    usage: {
      ...NO_USAGE,
      inputTokens: integer(row, "input_tokens"),
      cachedInputTokens: integer(row, "cached_input_tokens"),
      cacheWriteInputTokens: integer(row, "cache_write_input_tokens"),
      outputTokens: integer(row, "output_tokens"),
      reasoningOutputTokens: integer(row, "reasoning_output_tokens"),
    },
    costUsd: integer(row, "cost_usd"),
  };
}

function took(usage: Usage, costUsd: number | undefined): UsageSums {
  return { requests: 1, unpriced: costUsd === undefined ? 1 : 0, usage, costUsd: costUsd ?? 0 };
}

function totalOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

interface Entry extends UsageSums {
  readonly day: string;
  readonly provider: string;
  readonly model: string;
  readonly taskId: string;
}

/** `threadId` is empty for what a deleted thread took. */
function add(connection: Connection, threadId: string, entry: Entry): void {
  const { day, provider, model, taskId, requests, unpriced, usage, costUsd } = entry;
  connection.run(
    `INSERT INTO usage_days VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, unpriced = unpriced + excluded.unpriced,
       input_tokens = input_tokens + excluded.input_tokens,
       cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
       cache_write_input_tokens = cache_write_input_tokens + excluded.cache_write_input_tokens,
       output_tokens = output_tokens + excluded.output_tokens,
       reasoning_output_tokens = reasoning_output_tokens + excluded.reasoning_output_tokens,
       cost_usd = cost_usd + excluded.cost_usd`,
    day,
    provider,
    model,
    threadId === "" ? "" : workspaceOf(connection, threadId, taskId),
    threadId,
    taskId,
    requests,
    unpriced,
    usage.inputTokens,
    usage.cachedInputTokens,
    usage.cacheWriteInputTokens,
    usage.outputTokens,
    usage.reasoningOutputTokens,
    costUsd,
  );
}

/** That of the task, whose worktrees nobody knows by name; of anything else that of the thread. */
function workspaceOf(connection: Connection, threadId: string, taskId: string): string {
  const row =
    (taskId === ""
      ? undefined
      : connection.get("SELECT json_extract(record, '$.spec.workspace') AS folder FROM tasks WHERE id = ?", taskId)) ??
    connection.get("SELECT workspace AS folder FROM threads WHERE id = ?", threadId);
  return row === undefined ? "" : text(row, "folder");
}
