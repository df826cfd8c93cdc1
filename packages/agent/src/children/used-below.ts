/**
 * The limits of an envelope hold for a thread together with those that it has started. While its turn runs, the turns of its
 * children count in its meter; what they did before is read from their streams.
 */
import type { SinceEntered } from "@heddle/tools";
import type { ReadJournal } from "../threads/history.ts";

type Used = Pick<SinceEntered, "calls" | "bytesWritten">;

/** More than a thread has. */
const MAX_CHILDREN = 10_000;
const PAGE = 1_000;

/** What the children of a thread, and theirs, have done since a time. */
export async function usedBelow(
  journal: Pick<ReadJournal, "threads" | "read">,
  threadId: string,
  since: number,
): Promise<Used> {
  const sum = { calls: 0, bytesWritten: 0 };
  for (const { id } of await journal.threads.childrenOf(threadId, { limit: MAX_CHILDREN })) {
    for (const { calls, bytesWritten } of [await usedIn(journal, id, since), await usedBelow(journal, id, since)]) {
      sum.calls += calls;
      sum.bytesWritten += bytesWritten;
    }
  }
  return sum;
}

async function usedIn(journal: Pick<ReadJournal, "threads" | "read">, stream: string, since: number): Promise<Used> {
  const sum = { calls: 0, bytesWritten: 0 };
  // Its owner has deleted what it said.
  if (await journal.threads.isDeleted(stream)) return sum;
  for (let after = 0, isMore = true; isMore;) {
    const page = await journal.read({ stream, after, types: ["tool.intended", "tool.settled"], limit: PAGE });
    for (const { at, body, version } of page) {
      after = version;
      if (at < since) continue;
      if (body.type === "tool.intended") sum.calls += 1;
      if (body.type === "tool.settled") sum.bytesWritten += body.bytesWritten ?? 0;
    }
    isMore = page.length === PAGE;
  }
  return sum;
}
