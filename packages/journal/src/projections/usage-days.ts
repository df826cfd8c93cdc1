/**
 * The ledger: tokens and costs by day (UTC), provider, model, workspace, thread and task. Every answer is counted once,
 * on its day. The last event of a deleted thread has its usage, so that the sums stay, without the workspace.
 */
import { NO_USAGE, usageInSnakeCase, type Usage } from "@heddle/protocol";
import type { UsageSums } from "../queries/usage.ts";
import { integer, text, type Row } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Look, type Projection, type RowChange } from "./changes.ts";
import { textOf } from "./requests.ts";

const table = "usage_days";

export const SUM_COLUMNS = [
  "requests",
  "unpriced",
  "input_tokens",
  "cached_input_tokens",
  "cache_write_input_tokens",
  "output_tokens",
  "reasoning_output_tokens",
  "cost_usd",
] as const;

interface Entry extends UsageSums {
  readonly day: string;
  readonly provider: string;
  readonly model: string;
  readonly workspace: string;
  readonly taskId: string;
}

export const usageDays: Projection = {
  table,
  needs({ stream, body }): readonly Look[] {
    switch (body.type) {
      case "model.responded": {
        const columns = ["provider", "model", "workspace", "task_id"];
        return [
          { table: "open_requests", columns, where: { id: body.requestId } },
          { table: "threads", columns: ["workspace"], where: { id: stream } },
        ];
      }
      case "background.ran":
        return [{ table: "threads", columns: ["workspace"], where: { id: stream } }];
      case "task.checked": {
        if (body.opinion?.threadId === undefined) return NO_LOOKS;
        const columns = ["day", "provider", "model", ...SUM_COLUMNS];
        return [
          { table: "tasks", columns: ["workspace"], where: { id: stream } },
          { table, columns, where: { thread_id: body.opinion.threadId, task_id: "" } },
        ];
      }
      default:
        return NO_LOOKS;
    }
  },
  changes({ stream, at, body }, [found, others = []]) {
    const first = found?.[0];
    switch (body.type) {
      case "model.responded": {
        const [provider, model, taskId] = [textOf(first, "provider"), textOf(first, "model"), textOf(first, "task_id")];
        const workspace = textOf(first ?? others[0], "workspace");
        return [add(stream, { day: dayOf(at), provider, model, workspace, taskId, ...used(body.usage, body.costUsd) })];
      }
      case "background.ran": {
        const { outcome, provider, model, usage, costUsd } = body;
        // A failure before any answer has no known usage.
        if (outcome === "failed" && usage.inputTokens + usage.outputTokens === 0) return NO_CHANGES;
        const workspace = textOf(first, "workspace");
        return [add(stream, { day: dayOf(at), provider, model, workspace, taskId: "", ...used(usage, costUsd) })];
      }
      case "task.checked": {
        const threadId = body.opinion?.threadId;
        if (threadId === undefined) return NO_CHANGES;
        // Requested in a thread of its own; only now known to belong to the task.
        const to = { workspace: textOf(first, "workspace"), taskId: stream };
        const moved = others.map((row) => add(threadId, { ...dayRow(row), ...to, ...toSums(row) }));
        return [{ kind: "delete", table, where: { thread_id: threadId, task_id: "" } }, ...moved];
      }
      case "thread.deleted":
        return [
          { kind: "delete", table, where: { thread_id: stream } },
          ...(body.usage ?? []).map((kept) => add("", { ...kept, workspace: "", taskId: kept.taskId ?? "" })),
        ];
      default:
        return NO_CHANGES;
    }
  },
};

function dayRow(row: Row): Pick<Entry, "day" | "provider" | "model"> {
  return { day: text(row, "day"), provider: text(row, "provider"), model: text(row, "model") };
}

export function toSums(row: Row): UsageSums {
  return {
    requests: integer(row, "requests"),
    unpriced: integer(row, "unpriced"),
    usage: usageIn(row),
    costUsd: integer(row, "cost_usd"),
  };
}

export function usageIn(row: Row): Usage {
  return {
    ...NO_USAGE,
    inputTokens: integer(row, "input_tokens"),
    cachedInputTokens: integer(row, "cached_input_tokens"),
    cacheWriteInputTokens: integer(row, "cache_write_input_tokens"),
    outputTokens: integer(row, "output_tokens"),
    reasoningOutputTokens: integer(row, "reasoning_output_tokens"),
  };
}

function used(usage: Usage, costUsd: number | undefined): UsageSums {
  return { requests: 1, unpriced: costUsd === undefined ? 1 : 0, usage, costUsd: costUsd ?? 0 };
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** `threadId` is empty for the usage of a deleted thread. */
function add(threadId: string, entry: Entry): RowChange {
  const { day, provider, model, workspace, taskId, requests, unpriced, usage, costUsd } = entry;
  const values = { requests, unpriced, ...usageInSnakeCase(usage), cost_usd: costUsd };
  const key = { day, provider, model, workspace, thread_id: threadId, task_id: taskId };
  return { kind: "add", table, key, values };
}
