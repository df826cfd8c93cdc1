/** How many threads may be started below one: `limits.childThreads` counts those that its children start as well. */
import type { Journal, ThreadRow } from "@heddle/journal";
import { HeddleError, type Envelope } from "@heddle/protocol";

/** Far more than one thread has. */
const MAX_LISTED = 10_000;

interface Starting {
  readonly threadId: string;
  /** The one it is in. */
  readonly envelope: Envelope;
}

/** Throws `child.too-many` where the thread, or one above it, has as many as its envelope allows. */
export async function requireChildren({ threads }: Pick<Journal, "threads">, { threadId, envelope }: Starting) {
  let at: Starting | undefined = { threadId, envelope };
  while (at !== undefined) {
    const allowed: number = at.envelope.limits?.childThreads ?? Infinity;
    if (allowed !== Infinity && (await countBelow({ threads }, at.threadId)) >= allowed) {
      const whose = at.threadId === threadId ? "this envelope" : "the envelope of the thread above this one";
      throw new HeddleError("child.too-many", `${whose} allows ${allowed} agents, and that many were started already`);
    }
    const row: ThreadRow | undefined = await threads.get(at.threadId);
    at = row?.parent === undefined ? undefined : await aboveOf({ threads }, row.parent.threadId);
  }
}

/** undefined: it is in no envelope any more. */
async function aboveOf({ threads }: Pick<Journal, "threads">, threadId: string): Promise<Starting | undefined> {
  const row = await threads.envelope(threadId);
  return row === undefined ? undefined : { threadId, envelope: row.envelope };
}

/** The thread that started all others of its family. */
export async function rootOf({ threads }: Pick<Journal, "threads">, threadId: string): Promise<string> {
  const row: ThreadRow | undefined = await threads.get(threadId);
  return row?.parent === undefined ? threadId : rootOf({ threads }, row.parent.threadId);
}

async function countBelow({ threads }: Pick<Journal, "threads">, threadId: string): Promise<number> {
  const children = await threads.childrenOf(threadId, { limit: MAX_LISTED });
  let count = children.length;
  for (const { id } of children) count += await countBelow({ threads }, id);
  return count;
}
