/**
 * What the commands of threads did on the network, where their envelopes list hosts: loaded only then. Counted in memory over all
 * sandboxes of a thread, and recorded at the end of each turn: whoever is killed loses only counts.
 */
import type { Journal } from "@heddle/journal";
import type { EventBody } from "@heddle/protocol";
import { createNetworkLog, type NetworkLog } from "@heddle/tools/network";

/** By thread. */
export type NetworkLogs = Map<string, NetworkLog>;

export function networkLogOf(logs: NetworkLogs, threadId: string): NetworkLog {
  const log = logs.get(threadId) ?? createNetworkLog();
  logs.set(threadId, log);
  return log;
}

/** The counts begin again. Outside a turn they belong to the last one, whose commands kept running. */
export async function recordNetworkUse(
  journal: Journal,
  {
    log,
    threadId,
    during,
  }: { readonly log: NetworkLog; readonly threadId: string; readonly during?: string | undefined },
): Promise<void> {
  const { used, refused } = log.take();
  const turnId = during ?? (await journal.threads.lastTurn(threadId))?.id;
  if (used.length + refused.length === 0 || turnId === undefined) return;
  const events: EventBody[] = [
    ...used.map((row) => ({ type: "network.used" as const, v: 1 as const, turnId, ...row })),
    ...refused.map((row) => ({ type: "network.refused" as const, v: 1 as const, turnId, ...row })),
  ];
  await journal.append({ stream: threadId, author: "system", events });
}
