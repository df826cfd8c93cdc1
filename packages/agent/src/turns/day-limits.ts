/**
 * What all threads of a home may use in a day, in UTC as the ledger counts: no turn begins once that is used up. A turn that
 * runs goes on to its end. A request without a known price counts in tokens alone.
 */
import { HeddleError } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

export interface DayLimits {
  readonly costUsd?: number | undefined;
  readonly tokens?: number | undefined;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Of one day: providers and models are added up by the store. */
const ONE_ROW = 1;

/** `limit.reached` with `details.limit: "day"` and when the next day begins. */
export async function refuseSpentDay(journal: Journal, limits: DayLimits, now: number): Promise<void> {
  if (limits.costUsd === undefined && limits.tokens === undefined) return;
  const day = new Date(now).toISOString().slice(0, 10);
  const [row] = await journal.usage.rows({ by: ["day"], from: day, limit: ONE_ROW });
  const { costUsd = 0, usage } = row ?? {};
  const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
  const spent =
    limits.costUsd !== undefined && costUsd >= limits.costUsd
      ? `$${costUsd.toFixed(2)} of $${limits.costUsd} were spent (day_limits.cost_usd)`
      : limits.tokens !== undefined && tokens >= limits.tokens
        ? `${tokens} of ${limits.tokens} tokens were used (day_limits.tokens)`
        : undefined;
  if (spent === undefined) return;
  const until = Date.parse(day) + DAY_MS;
  const message = `the limit of this day is reached: ${spent}; turns begin again at ${new Date(until).toISOString()}, or with a higher limit in config.toml`;
  throw new HeddleError("limit.reached", message, { details: { limit: "day", until } });
}
