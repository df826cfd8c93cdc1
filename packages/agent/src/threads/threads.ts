/** Threads outside their turns: found, forked, named, exported, deleted. Deleted threads are in no answer. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, isHeddleError, newThreadId, visibleLine, type By, type EventOf } from "@heddle/protocol";
import type { Journal, ThreadRow, TurnRow } from "@heddle/journal";
import { withGitInfo } from "../context/git-info.ts";
import { ancestry, lineage, type ForkPoint } from "./history.ts";
import { isThreadId } from "../heddle.ts";
import { isKept, readPlan, turnsBack, type Past } from "./past.ts";
import { resumedFrom } from "./resumed.ts";

/** An id, a prefix of one, a name; or the thread that was active last, in one workspace or in all. */
export type ThreadSelector =
  | string
  | { readonly last: true; readonly workspace: string }
  | { readonly last: true; readonly all: true };

/** Shorter prefixes match too many: the first eight digits of an id stand for about a minute. */
const MIN_PREFIX_CHARS = 8;
/** Named in a message; more would not be read. */
const MAX_CANDIDATES = 10;

export async function findThread(journal: Journal, selector: ThreadSelector): Promise<ThreadRow> {
  return typeof selector === "string" ? await findByText(journal, selector) : await findLast(journal, selector);
}

async function findByText(journal: Journal, wanted: string): Promise<ThreadRow> {
  const exact = await journal.threads.get(wanted);
  if (exact !== undefined) return exact;
  const limit = MAX_CANDIDATES + 1;
  const named = await journal.threads.named(wanted, { limit });
  const prefix = wanted.toLowerCase();
  const begun = prefix.length < MIN_PREFIX_CHARS ? [] : await journal.threads.beginningWith(prefix, { limit });
  const found = [...new Map([...named, ...begun].map((thread) => [thread.id, thread])).values()];
  const [first] = found;
  if (first === undefined) throw await notFound(journal, wanted);
  if (found.length === 1) return first;
  throw ambiguous(wanted, found);
}

async function findLast(journal: Journal, selector: Exclude<ThreadSelector, string>): Promise<ThreadRow> {
  const workspace = "workspace" in selector ? { workspace: selector.workspace } : {};
  const [newest] = await journal.threads.list({ ...workspace, limit: 1 });
  if (newest !== undefined) return newest;
  const where = "workspace" in selector ? ` in ${visibleLine(selector.workspace)}; --all looks everywhere` : " yet";
  throw new HeddleError("thread.not-found", `there is no thread${where}`);
}

async function notFound(journal: Journal, wanted: string): Promise<HeddleError> {
  const shown = visibleLine(wanted);
  // Callers of Codex look for this beginning.
  const noRollout = `no rollout found for thread id ${shown}`;
  if (await journal.threads.isDeleted(wanted))
    return new HeddleError("thread.not-found", `${noRollout}: thread ${shown} was deleted`);
  const isShort = /^[0-9a-f-]+$/i.test(wanted) && wanted.length < MIN_PREFIX_CHARS;
  const hint = isShort
    ? `write at least ${MIN_PREFIX_CHARS} characters of an id`
    : "heddle threads list shows ids and names";
  const what = isThreadId(wanted) ? noRollout : `no thread has the id or name ${shown}`;
  return new HeddleError("thread.not-found", `${what}; ${hint}`);
}

function ambiguous(wanted: string, found: readonly ThreadRow[]): HeddleError {
  const shown = found.slice(0, MAX_CANDIDATES).map(({ id, name, preview, workspace }) => {
    const columns = [name, preview].filter((text) => text !== undefined).map((text) => visibleLine(text));
    return `  ${id}  ${visibleLine(workspace)}  ${columns.join("  ")}`.trimEnd();
  });
  const more = found.length > MAX_CANDIDATES ? ["  …"] : [];
  const message = [`${visibleLine(wanted)} fits more than one thread; name one by its id:`, ...shown, ...more].join(
    "\n",
  );
  const candidates = found.slice(0, MAX_CANDIDATES).map(({ id }) => id);
  return new HeddleError("thread.ambiguous", message, { details: { candidates: candidates.join(" ") } });
}

export interface ForkThread {
  /** Of the fork, where something was made for it before. */
  readonly id?: string;
  readonly threadId: string;
  /** The last turn it begins with; absent: the last that has ended. */
  readonly atTurn?: string;
  /** It begins with what came before this turn; instead of `atTurn`. */
  readonly beforeTurn?: string;
  readonly origin: string;
  readonly workspace?: string;
  readonly isEphemeral?: true;
}

/** A running turn is left out: a fork begins where a turn has ended. */
async function planFork(journal: Journal, fork: ForkThread): Promise<Omit<EventOf<"thread.created">, "type" | "v">> {
  const parent = await requireThread(journal, fork.threadId);
  const forkedFrom = await forkPoint(journal, fork);
  // Refused now rather than never readable.
  await ancestry(journal, forkedFrom);
  const ephemeral = fork.isEphemeral === true ? { isEphemeral: true as const } : {};
  return { workspace: fork.workspace ?? parent.workspace, origin: fork.origin, forkedFrom, ...ephemeral };
}

/** A damaged past is not forked. */
export async function planSoundFork(journal: Journal, fork: ForkThread): ReturnType<typeof planFork> {
  await requireSound(journal, fork.threadId);
  return planFork(journal, fork);
}

/** Where the history is cut. The turn may be inherited; then the fork point is in its own stream. */
async function forkPoint(journal: Journal, { threadId, atTurn, beforeTurn }: ForkThread): Promise<ForkPoint> {
  const past = await readPlan(journal, threadId);
  if (beforeTurn !== undefined) {
    const turn = await journal.threads.turn(beforeTurn);
    if (turn === undefined || !isKept(past, turn)) throw notInThread(beforeTurn, threadId);
    return (await lastEnd(journal, past, turn)) ?? { threadId: past.parts[0]?.stream ?? threadId, version: 1 };
  }
  const asked = atTurn === undefined ? undefined : await journal.threads.turn(atTurn);
  const found = asked !== undefined && isKept(past, asked) ? asked : undefined;
  if (atTurn === undefined) return (await lastEnd(journal, past)) ?? { threadId, version: 1 };
  if (found?.endedVersion !== undefined) return { threadId: found.threadId, version: found.endedVersion };
  if (found === undefined) throw notInThread(atTurn, threadId);
  throw new HeddleError("turn.not-found", `turn ${visibleLine(atTurn)} has not ended yet`);
}

function notInThread(turnId: string, threadId: string): HeddleError {
  return new HeddleError("turn.not-found", `turn ${visibleLine(turnId)} is not in thread ${threadId}`);
}

async function lastEnd(journal: Journal, past: Past, before?: TurnRow): Promise<ForkPoint | undefined> {
  let isThere = before === undefined;
  for await (const { id, threadId, endedVersion: version = Infinity, range } of turnsBack(journal, past)) {
    if (isThere && version <= range.upTo) return { threadId, version };
    isThere ||= id === before?.id;
  }
  return undefined;
}

export async function forkThread(journal: Journal, { by, ...fork }: ForkThread & By): Promise<string> {
  const created = await planFork(journal, fork);
  const threadId = fork.id ?? newThreadId();
  await journal.append({
    stream: threadId,
    author: by,
    events: withGitInfo({ type: "thread.created", v: 1, ...created }),
    expectedVersion: 0,
  });
  return threadId;
}

const MAX_NAME_CHARS = 200;

export interface NameThread {
  readonly threadId: string;
  readonly name: string;
}

export async function nameThread(journal: Journal, { threadId, name, by }: NameThread & By): Promise<void> {
  await requireThread(journal, threadId);
  const events = [{ type: "thread.named", v: 1, name: checkedName(name) }] as const;
  await journal.append({ stream: threadId, author: by, events });
}

export function checkedName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== "" && trimmed.length <= MAX_NAME_CHARS && visibleLine(trimmed) === trimmed) return trimmed;
  throw new HeddleError("usage.invalid", `a name is one line of 1 to ${MAX_NAME_CHARS} visible characters`);
}

export interface ArchiveThread {
  readonly threadId: string;
  readonly isArchived: boolean;
}

/** An archived thread keeps everything; lists leave it out. */
export async function archiveThread(journal: Journal, { threadId, isArchived, by }: ArchiveThread & By): Promise<void> {
  const thread = await requireThread(journal, threadId);
  if (thread.isArchived === isArchived) return;
  await journal.append({ stream: threadId, author: by, events: [{ type: "thread.archived", v: 1, isArchived }] });
}

export interface DeleteThread {
  readonly threadId: string;
  readonly reason?: string;
}

/** A thread that is deleted already stays so: after a crash its files are still removed. */
export async function purgeThread(journal: Journal, { threadId, reason, by }: DeleteThread & By): Promise<void> {
  if (await journal.threads.isDeleted(threadId)) return;
  await journal.purge({ stream: threadId, author: by, reason: reason ?? "deleted" });
}

/** Far more than one thread starts. */
const MAX_CHILDREN = 10_000;

/** What a thread had others do is deleted with it, unless somebody works there or has forked it. */
export async function deleteChildren(
  journal: Journal,
  threadId: string,
  deleteOne: (threadId: string) => Promise<void>,
): Promise<void> {
  for (const { id } of await journal.threads.childrenOf(threadId, { limit: MAX_CHILDREN })) {
    try {
      await deleteOne(id);
    } catch (error) {
      if (!isHeddleError(error) || !["turn.active", "thread.has-forks"].includes(error.code)) throw error;
    }
  }
}

export async function removeFiles(home: string, threadId: string): Promise<void> {
  for (const folder of ["outputs", "quarantine", "exports"]) {
    const path = join(home, folder, threadId);
    try {
      await rm(path, { recursive: true, force: true });
    } catch (cause) {
      throw new HeddleError("store.failed", `thread ${threadId} is deleted, but ${path} could not be removed`, {
        cause,
      });
    }
  }
}

/** A thread with all of its past as JSON lines that `verifyExport` and others can check. */
export async function* exportThread(
  journal: Journal,
  threadId: string,
  { withOutputs = false }: { readonly withOutputs?: boolean } = {},
): AsyncGenerator<string, void, void> {
  await requireThread(journal, threadId);
  yield* journal.exportLines(await lineage(journal, threadId), { withOutputs });
}

export async function requireThread(journal: Journal, threadId: string): Promise<ThreadRow> {
  const thread = await journal.threads.get(threadId);
  if (thread === undefined) throw await notFound(journal, threadId);
  return thread;
}

/** A damaged past must not be continued: the damage is reported before anything is written after it. */
export async function requireSound(journal: Journal, threadId: string): Promise<ThreadRow> {
  const thread = await requireThread(journal, threadId);
  for (const { stream, after } of await resumedFrom(journal, threadId)) {
    const damage = await journal.prove(stream, after);
    if (damage !== undefined) throw new HeddleError("store.damaged", damage.message);
  }
  return thread;
}
