/** What is not in the record of a task: what its open turn has used so far, and how old the finding of its checks is. */
import type { Journal } from "@heddle/journal";
import { defined, type TaskRecord } from "@heddle/protocol";
import type { Task } from "@heddle/protocol/http";
import type { z } from "zod";
import { turnView } from "./views.ts";

type Now = Pick<z.output<typeof Task>, "spentNow" | "lastWriteAt" | "editsSinceCheck">;

/** More edits than this are as many: the finding is old. */
const MAX_EDITS = 100;

export async function taskNow(journal: Journal, task: TaskRecord, now = Date.now()): Promise<Now> {
  const { threadId, lastCheck } = task;
  if (threadId === undefined) return {};
  const edits = await journal.marks.events({ stream: threadId, kinds: ["fileChange"], name: "", newest: MAX_EDITS });
  const since = lastCheck === undefined ? undefined : edits.filter(({ at }) => at > lastCheck.at).length;
  const spentNow = task.openPrompt === undefined ? undefined : await withOpenTurn(journal, task, { threadId, now });
  return defined({ spentNow, lastWriteAt: edits.at(-1)?.at, editsSinceCheck: since });
}

async function withOpenTurn(
  journal: Journal,
  { spent }: TaskRecord,
  { threadId, now }: { readonly threadId: string; readonly now: number },
): Promise<Now["spentNow"]> {
  const row = await journal.threads.lastTurn(threadId);
  if (row?.status !== "open") return undefined;
  const { usage, costUsd, admittedAt } = await turnView(journal, row);
  return {
    ...spent,
    timeMs: spent.timeMs + Math.max(0, now - admittedAt),
    turns: spent.turns + 1,
    tokens: spent.tokens + usage.inputTokens + usage.outputTokens,
    costUsd: spent.costUsd + (costUsd ?? 0),
    isCostPartial: spent.isCostPartial || costUsd === undefined,
  };
}
