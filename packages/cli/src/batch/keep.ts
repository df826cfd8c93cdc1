/** What is kept of a run beside its result, read back from the record once its turns are over. */
import { setImmediate as nextTick } from "node:timers/promises";
import type { Heddle } from "@heddle/agent";
import { createStreamRedactor, type Redactor } from "@heddle/journal";
import { blobPath } from "@heddle/journal/blobs";
import { toHeddleError, type RunResult, type StoredEvent } from "@heddle/protocol";
import { allEvents } from "@heddle/runtime/record";
import { standingOf } from "@heddle/runtime/settings";
import { asJson } from "./artifacts.ts";
import { gitChange, gitState, type GitLook, type GitState } from "./git-state.ts";
import { outputsOf, reportOf, transcriptOf } from "./report.ts";
import type { RunNotes } from "./run-notes.ts";

/** The workspace before the run; null when it is no repository. */
export async function lookAtGit(look: GitLook, redactor: Redactor): Promise<RunResult["git"]> {
  // Without one above it there is nothing to open a sandbox for.
  if ((await standingOf(look.workspace, undefined)).repository === undefined) return null;
  try {
    const before = await gitState(look);
    return before === undefined ? null : { before: redacted(before, redactor), after: null, diffstat: null };
  } catch (error) {
    return { before: null, after: null, diffstat: null, error: toHeddleError(error).message };
  }
}

/** A failure here never hides how the turn ended: what could be kept is kept, what could not is said. */
export async function keepRecord(
  heddle: Heddle,
  notes: RunNotes,
  { home, ...look }: GitLook & { readonly home: string },
): Promise<void> {
  await keepEvents(heddle, notes, home);
  await keepGit(heddle.journal.redactor, notes, look);
}

async function keepEvents(heddle: Heddle, notes: RunNotes, home: string): Promise<void> {
  const { artifacts, threadId } = notes;
  if (threadId === undefined) return;
  try {
    notes.threadUsage = (await heddle.journal.threads.get(threadId))?.usage;
    if (artifacts === undefined) return;
    const events = await eventsOf(heddle, notes);
    artifacts.write("transcript", asJson(transcriptOf(events)));
    artifacts.write("report", asJson(reportOf(events)));
    for (const { callId, blob, file } of outputsOf(events)) {
      const path = blob === undefined ? file : blobPath(home, blob);
      if (path !== undefined) await artifacts.keepOutput(callId, path);
    }
  } catch (error) {
    notes.failure ??= toHeddleError(error, "store.failed");
  }
}

async function eventsOf(heddle: Heddle, { handles }: RunNotes): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (const { threadId, turnId, admittedVersion } of handles) {
    for await (const event of allEvents(heddle.journal, threadId)) {
      if (event.version < admittedVersion || !("turnId" in event.body) || event.body.turnId !== turnId) continue;
      events.push(event);
    }
  }
  return events;
}

async function keepGit(redactor: Redactor, notes: RunNotes, look: GitLook): Promise<void> {
  const { git, artifacts } = notes;
  if (git === null || git.before === null) return;
  try {
    const { state, diffstat, patch } = await gitChange(look, git.before, artifacts !== undefined);
    notes.git = { ...git, after: state === undefined ? null : redacted(state, redactor), diffstat: diffstat ?? null };
    if (patch !== undefined) artifacts?.write("diff", await redactedBytes(patch, redactor));
  } catch (error) {
    notes.git = { ...git, error: toHeddleError(error).message };
  }
}

/** A branch may be called anything. */
function redacted(state: GitState, redactor: Redactor): GitState {
  return redactor.body(state, JSON.stringify(state));
}

const PIECE_BYTES = 256 * 1024;

/** One character for each byte: where no secret is, every byte stays. A piece at a time, because a patch may be long. */
async function redactedBytes(bytes: Buffer, redactor: Redactor): Promise<Buffer> {
  const stream = createStreamRedactor(redactor);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    pieces.push(Buffer.from(stream.push(bytes.toString("latin1", at, at + PIECE_BYTES)), "latin1"));
    await nextTick();
  }
  return Buffer.concat([...pieces, Buffer.from(stream.end(), "latin1")]);
}
