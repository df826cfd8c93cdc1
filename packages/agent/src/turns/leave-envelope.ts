/**
 * An outside agent leaves its envelope when its turn ends, whatever ends it. Leaving is in the append of the one terminal event,
 * so that there is one of both: by the process that ran the turn, or by the one that closes it after a crash.
 */
import type { EventBody, Envelope } from "@heddle/protocol";
import type { ReadJournal } from "../threads/history.ts";
import { filesOf } from "./enter-envelope.ts";

/** A list of files that takes longer is left out: a turn that was stopped has to end. `heddle verify` says that it is missing. */
const LIST_MS = 4_000;

export interface EndingTurn {
  readonly threadId: string;
  readonly turnId: string;
  readonly workspace: string;
  /** What its client gave. */
  readonly outcome?: unknown;
}

/** Empty: the thread is in none. */
export async function leavingEvents(
  journal: Pick<ReadJournal, "threads" | "keepManifest">,
  { threadId, turnId, workspace, outcome }: EndingTurn,
): Promise<readonly EventBody[]> {
  const row = await journal.threads.envelope(threadId);
  if (row === undefined || row.isLeft) return [];
  return [
    {
      type: "envelope.left",
      v: 1,
      duringTurn: turnId,
      cause: "end",
      envelopeHash: row.hash,
      calls: row.calls,
      ...(outcome === undefined ? {} : { outcome }),
      ...(await filesNow(journal, { envelope: row.envelope, workspace })),
    },
  ];
}

async function filesNow(
  journal: Pick<ReadJournal, "keepManifest">,
  at: { readonly envelope: Envelope; readonly workspace: string },
): Promise<{ readonly manifest?: string }> {
  try {
    return await filesOf(journal, { ...at, signal: AbortSignal.timeout(LIST_MS) });
  } catch {
    return {};
  }
}
