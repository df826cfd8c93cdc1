/**
 * The envelope of a thread as events. A turn enters the one it runs in where the thread is in none, or in another; in the
 * append of `turn.started`, so that no turn runs in an envelope that is not on record.
 */
import type { Envelope, EventBody, EventOf } from "@heddle/protocol";
import type { Journal, ThreadEnvelopeRow } from "@heddle/journal";
import { envelopeHash, type SinceEntered } from "@heddle/tools";
import type { TurnRequest } from "../runners/runner.ts";
import type { ReadJournal } from "../threads/history.ts";

type EnteringTurn = Pick<TurnRequest, "threadId" | "turnId" | "sandboxContext" | "workspace">;

export async function enteringEvents(
  journal: Pick<ReadJournal, "threads" | "keepManifest">,
  { threadId, turnId, sandboxContext, workspace }: EnteringTurn,
  signal: AbortSignal,
): Promise<readonly EventBody[]> {
  const { envelope, sandbox, bound } = sandboxContext;
  // `turn.started` says what it runs in: a message neither moves its receiver nor begins its limits anew.
  if (bound !== undefined) return [];
  const row = await journal.threads.envelope(threadId);
  const ceiling = ceilingToRecord(row, sandboxContext);
  const hash = envelopeHash(envelope);
  const isIn = row !== undefined && !row.isLeft;
  if (isIn && row.hash === hash && ceiling === undefined) return [];
  const cause = isIn ? "settings" : "start";
  const entered: EventOf<"envelope.entered"> = {
    type: "envelope.entered",
    v: 1,
    duringTurn: turnId,
    cause,
    envelope,
    envelopeHash: hash,
    sandboxLevel: sandbox.level,
    ...(ceiling === undefined ? {} : { ceiling }),
    // What surrounds the thread may change while it stays where it has hopped to.
    depth: isIn && row.envelope.id === envelope.id ? row.stack.length : 0,
    ...(await filesOf(journal, { envelope, workspace, signal })),
  };
  if (!isIn) return [entered];
  const before = await filesOf(journal, { envelope: row.envelope, workspace, signal });
  return [{ ...leaving(row, { cause, turnId }), ...before }, entered];
}

/**
 * The list of files of an envelope that asks for one, at the moment it is entered or left: what it may write, and the
 * workspace, so that a change where nothing may be written is seen too. Without its list it is not entered.
 */
export async function filesOf(
  journal: Pick<Journal, "keepManifest">,
  {
    envelope,
    workspace,
    signal,
  }: { readonly envelope: Envelope; readonly workspace: string; readonly signal: AbortSignal },
): Promise<{ readonly manifest?: string }> {
  if (envelope.manifest !== true) return {};
  // The root of the machine is what `full` may write; nobody lists that.
  const roots = [workspace, ...envelope.writeRoots.filter((root) => root !== "/")];
  return { manifest: await journal.keepManifest(roots, signal) };
}

/** Read only where the envelope has limits; with what the children of the thread did. */
export async function sinceEntered(
  journal: Pick<ReadJournal, "threads" | "read">,
  { threadId, sandboxContext }: Pick<TurnRequest, "threadId" | "sandboxContext">,
): Promise<SinceEntered> {
  const { limits } = sandboxContext.envelope;
  const row = limits === undefined ? undefined : await journal.threads.envelope(threadId);
  if (row === undefined) return { calls: 0, bytesWritten: 0, enteredAt: Date.now() };
  if (limits?.calls === undefined && limits?.bytesWritten === undefined) return row;
  const { usedBelow } = await import("../children/used-below.ts");
  const { calls, bytesWritten } = await usedBelow(journal, threadId, row.enteredAt);
  return { calls: row.calls + calls, bytesWritten: row.bytesWritten + bytesWritten, enteredAt: row.enteredAt };
}

function leaving(
  { hash, calls }: ThreadEnvelopeRow,
  { cause, turnId }: { readonly cause: EventOf<"envelope.left">["cause"]; readonly turnId: string },
): EventOf<"envelope.left"> {
  return { type: "envelope.left", v: 1, duringTurn: turnId, cause, envelopeHash: hash, calls };
}

/** undefined: as it is on record. Where the owner has taken it away, nothing is above `full`. */
function ceilingToRecord(
  row: ThreadEnvelopeRow | undefined,
  context: TurnRequest["sandboxContext"],
): Envelope | undefined {
  const now = context.ceiling?.envelope ?? (row?.ceiling === undefined ? undefined : context.named("full"));
  if (now === undefined) return undefined;
  return row?.ceiling !== undefined && envelopeHash(row.ceiling) === envelopeHash(now) ? undefined : now;
}
