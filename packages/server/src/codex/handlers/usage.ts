/** `account/usage/read`: the ledger of this home, where the original asks the cloud of its maker. */
import type { UsageRow } from "@heddle/journal";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { requireRow } from "../thread-facts.ts";

/** Twenty-seven years. */
const MAX_DAYS = 10_000;
const MAX_MODELS = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;
const MICROS = 1_000_000;
const NO_SUMMARY = {
  lifetimeTokens: null,
  peakDailyTokens: null,
  longestRunningTurnSec: null,
  currentStreakDays: null,
  longestStreakDays: null,
};

export const readUsage: Handler<"account/usage/read"> = async ({ threadId }, { server }) => {
  if (typeof threadId === "string") {
    const { id } = await requireRow(server, threadId, "thread not found: ");
    return { result: { summary: NO_SUMMARY, dailyUsageBuckets: null, threadUsage: await usageOf(id, server) } };
  }
  const rows = await server.heddle.journal.usage.rows({ by: ["day"], limit: MAX_DAYS });
  const days = rows.map((row) => ({ startDate: row.of.day ?? "", tokens: tokensOf(row) })).reverse();
  const streaks = streaksOf(days.map(({ startDate }) => Date.parse(startDate) / DAY_MS));
  const today = Math.floor(Date.now() / DAY_MS);
  const last = streaks.at(-1);
  const summary = {
    lifetimeTokens: days.reduce((sum, { tokens }) => sum + tokens, 0),
    peakDailyTokens: Math.max(0, ...days.map(({ tokens }) => tokens)),
    // The ledger has no turns.
    longestRunningTurnSec: null,
    currentStreakDays: last !== undefined && last.endDay >= today - 1 ? last.days : 0,
    longestStreakDays: Math.max(0, ...streaks.map((streak) => streak.days)),
  };
  return { result: { summary, dailyUsageBuckets: days, threadUsage: null } };
};

async function usageOf(threadId: string, { heddle }: ServerContext): Promise<Readonly<Record<string, unknown>>> {
  const rows = await heddle.journal.usage.rows({ by: ["model"], only: { thread: threadId }, limit: MAX_MODELS });
  const isPriced = rows.every(({ unpriced }) => unpriced === 0);
  const costMicros = Math.round(rows.reduce((sum, { costUsd }) => sum + costUsd, 0) * MICROS);
  return {
    threadId,
    // There are no credits here, only dollars.
    estimatedUsageCreditsMicros: 0,
    estimatedUsageUsdMicros: isPriced ? costMicros : null,
    nativeUsageUsdMicros: isPriced ? costMicros : null,
    groups: rows.map((row) => ({
      model: row.of.model ?? null,
      reasoningEffort: null,
      speed: null,
      estimatedUsageCreditsMicros: 0,
      inputTokens: row.usage.inputTokens,
      cachedInputTokens: row.usage.cachedInputTokens,
      netNewInputTokens: row.usage.inputTokens - row.usage.cachedInputTokens,
      outputTokens: row.usage.outputTokens,
      totalTokens: tokensOf(row),
    })),
  };
}

function tokensOf({ usage }: UsageRow): number {
  return usage.inputTokens + usage.outputTokens;
}

interface Streak {
  readonly endDay: number;
  readonly days: number;
}

/** Runs of days without a gap, oldest first; days are whole numbers in ascending order. */
function streaksOf(days: readonly number[]): readonly Streak[] {
  const streaks: Streak[] = [];
  for (const day of days) {
    const last = streaks.at(-1);
    if (last !== undefined && last.endDay === day - 1)
      streaks[streaks.length - 1] = { endDay: day, days: last.days + 1 };
    else streaks.push({ endDay: day, days: 1 });
  }
  return streaks;
}
