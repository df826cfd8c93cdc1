/**
 * What may be used in a day, in UTC as the ledger counts: by all threads of a home, and by those of one workspace. No turn
 * begins once that is used up; a turn that runs goes on to its end. A request without a known price counts in tokens alone.
 */
import { HeddleError } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

export interface DayLimit {
  readonly costUsd?: number | undefined;
  readonly tokens?: number | undefined;
}

export interface DayLimits extends DayLimit {
  /** Turns that begin. */
  readonly turns?: number | undefined;
  /** By folder; work of a task counts for the workspace of the task, wherever its tree is. */
  readonly workspaces?: Readonly<Record<string, DayLimit>> | undefined;
}

export interface SpentBy {
  readonly threadId: string;
  /** Of a thread that begins with the turn, or moves with it; absent: where the thread works. */
  readonly workspace?: string | undefined;
  readonly now: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Of one day: providers and models are added up by the store. */
const ONE_ROW = 1;

/** `limit.reached`, whose details name the limit, what is used of it and when the next day begins. */
export async function refuseSpentDay(journal: Journal, limits: DayLimits, by: SpentBy): Promise<void> {
  const { turns, workspaces = {} } = limits;
  const day = new Date(by.now).toISOString().slice(0, 10);
  const until = Date.parse(day) + DAY_MS;
  const refuse = (reached: Reached | undefined, workspace?: string): void => {
    if (reached === undefined) return;
    const { name, used, max, text } = reached;
    const where = workspace === undefined ? "" : ` in ${workspace}`;
    const message = `the limit of this day is reached${where}: ${text}; turns begin again at ${new Date(until).toISOString()}, or with a higher limit in config.toml`;
    const details = { limit: "day", name, used, max, until, ...(workspace === undefined ? {} : { workspace }) };
    throw new HeddleError("limit.reached", message, { details });
  };
  if (turns !== undefined) {
    const used = await journal.threads.turnsSince(Date.parse(day));
    if (used >= turns)
      refuse({ name: "turns", used, max: turns, text: `${used} of ${turns} turns began (day_limits.turns)` });
  }
  refuse(await reached(journal, day, { limit: limits, key: "day_limits" }));
  if (Object.keys(workspaces).length === 0) return;
  const workspace = await workspaceOf(journal, by);
  const limit = workspace === undefined || !Object.hasOwn(workspaces, workspace) ? undefined : workspaces[workspace];
  if (limit === undefined) return;
  refuse(await reached(journal, day, { limit, key: "day_limits.workspaces", workspace }), workspace);
}

interface Reached {
  readonly name: string;
  readonly used: number;
  readonly max: number;
  readonly text: string;
}

interface Asked {
  readonly limit: DayLimit;
  readonly key: string;
  readonly workspace?: string | undefined;
}

async function reached(journal: Journal, day: string, { limit, key, workspace }: Asked): Promise<Reached | undefined> {
  const { costUsd: maxUsd, tokens: maxTokens } = limit;
  if (maxUsd === undefined && maxTokens === undefined) return undefined;
  const only = workspace === undefined ? {} : { workspace };
  const [row] = await journal.usage.rows({ by: ["day"], from: day, only, limit: ONE_ROW });
  const { costUsd = 0, usage } = row ?? {};
  const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
  if (maxUsd !== undefined && costUsd >= maxUsd) {
    const text = `$${costUsd.toFixed(2)} of $${maxUsd} were spent (${key}.cost_usd)`;
    return { name: "cost_usd", used: costUsd, max: maxUsd, text };
  }
  if (maxTokens === undefined || tokens < maxTokens) return undefined;
  return {
    name: "tokens",
    used: tokens,
    max: maxTokens,
    text: `${tokens} of ${maxTokens} tokens were used (${key}.tokens)`,
  };
}

/** As the ledger has it: nobody knows the trees of tasks by name. */
async function workspaceOf(journal: Journal, { threadId, workspace }: SpentBy): Promise<string | undefined> {
  const task = (await journal.tasks.ofThread(threadId)).find(({ holder }) => holder !== undefined);
  return task?.spec.workspace ?? workspace ?? (await journal.threads.get(threadId))?.workspace;
}
