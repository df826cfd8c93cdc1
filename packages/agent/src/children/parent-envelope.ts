/** What a child thread may do at most: its parent's envelope when it was started, and now where the parent asks. */
import type { Journal } from "@heddle/journal";
import { HeddleError, type Envelope, type ThreadParent } from "@heddle/protocol";
import { intersectEnvelopes } from "@heddle/tools/child-envelopes";
import { withinCeiling } from "@heddle/tools/envelopes";
import type { TurnEnvelope } from "../turns/turn-envelope.ts";

export interface OfThread {
  readonly threadId: string;
  /** Of a thread that begins now; of others it is looked up. */
  readonly newThread?: { readonly parent?: ThreadParent | undefined } | undefined;
  /** The parent's envelope now; absent: somebody else starts the turn. */
  readonly under?: Envelope | undefined;
}

/** The envelope of a turn of a child thread, what it can hop to, and its ceiling, all within what its parent has. */
export async function withinParent(
  journal: Journal,
  own: TurnEnvelope,
  { threadId, newThread, under }: OfThread,
): Promise<TurnEnvelope> {
  const parent = newThread === undefined ? await readParent(journal, threadId) : newThread.parent;
  if (parent === undefined)
    throw new HeddleError("internal", `thread ${threadId} has no record of its parent's envelope`);
  const bound = under === undefined ? parent.envelope : intersectEnvelopes(parent.envelope, under);
  const most = own.ceiling === undefined ? bound : intersectEnvelopes(own.ceiling.envelope, bound);
  const whose = `the parent of this thread ("${most.id}")`;
  return {
    envelope: intersectEnvelopes(own.envelope, bound),
    named: (id) => intersectEnvelopes(own.named(id), bound),
    ceiling: { envelope: most, exceededBy: (envelope) => withinCeiling(envelope, most), whose },
  };
}

async function readParent(journal: Journal, threadId: string): Promise<ThreadParent | undefined> {
  const [first] = await journal.read({ stream: threadId, after: 0, limit: 1 });
  return first?.body.type === "thread.created" ? first.body.parent : undefined;
}
