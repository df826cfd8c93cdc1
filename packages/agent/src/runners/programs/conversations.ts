/**
 * Conversations that agent programs keep on this machine. Only their records are opened, read only: not their logins and not
 * their settings. What is listed was written by other programs and by their agents.
 */
import type { Journal } from "@heddle/journal";
import { HeddleError, visibleLine } from "@heddle/protocol";
import { runnerNames, type RunnerConfigs } from "../config.ts";
import { keptInFiles } from "./conversation-files.ts";
import { programOf, type AgentProgram } from "./find-program.ts";
import type { RecordKind } from "./known.ts";
import { RECORD_LAYOUTS } from "./record-layouts.ts";

export interface Conversation {
  /** The runner of the program that keeps it. */
  readonly from: string;
  /** The program's own name for it. */
  readonly handle: string;
  readonly file: string;
  readonly updatedAt: number;
  /** The folder that was worked in, and what it is about; absent: the record does not say. */
  readonly folder?: string | undefined;
  readonly title?: string | undefined;
  /** Its program has put it away. */
  readonly isArchived?: true;
}

/** A list: the newest, and how many there are. */
export interface Kept {
  readonly conversations: readonly Conversation[];
  readonly total: number;
}

export interface Wanted {
  readonly limit: number;
  /** What the handle begins with. */
  readonly handle?: string | undefined;
}

/** The record of one, from its first byte; closed by whoever reads it. */
export interface OpenRecord extends AsyncDisposable {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Something is still being written at its end. */
  readonly isGrowing?: () => boolean;
}

/** How one kind of program keeps its conversations. */
export interface Keeping {
  list(program: AgentProgram, wanted: Wanted): Promise<Kept>;
  /** undefined: it is gone. */
  open(conversation: Conversation): Promise<OpenRecord | undefined>;
}

export const openCodeStore = async (): Promise<Keeping> => (await import("./opencode-store.ts")).OPENCODE;

const OPENCODE: Keeping = {
  list: async (program, wanted) => (await openCodeStore()).list(program, wanted),
  open: async (conversation) => (await openCodeStore()).open(conversation),
};

/** undefined: Heddle cannot read what this program keeps. */
export function keepingOf({ record }: { readonly record?: RecordKind | undefined }): Keeping | undefined {
  if (record === undefined) return undefined;
  return record === "opencode" ? OPENCODE : keptInFiles(RECORD_LAYOUTS[record]);
}

export interface Programs {
  readonly runners: RunnerConfigs;
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface Keeper {
  readonly program: AgentProgram;
  readonly keeping: Keeping;
}

/** Of programs with the same folders the first. `runner.unsupported`: the records of this one are not known. */
function keepersOf({ runners, env }: Programs, from: string | undefined): readonly Keeper[] {
  const found = new Map<string, Keeper>();
  for (const name of runnerNames(runners)) {
    const config = runners[name] ?? {};
    // Heddle's own loop is no program.
    if (name === "embedded" || (from !== undefined && name !== from)) continue;
    const program = programOf(name, config, env);
    const keeping = keepingOf(program);
    const key = program.folders.join(" ");
    if (keeping !== undefined && program.folders.length > 0 && !found.has(key)) found.set(key, { program, keeping });
  }
  if (from === undefined || found.size > 0) return [...found.values()];
  const known = keepersOf({ runners, env }, undefined).map(({ program }) => program.runner);
  throw new HeddleError(
    "runner.unsupported",
    `Heddle cannot read conversations of ${visibleLine(from)}; it can of ${known.join(", ")}`,
  );
}

/** Newest first. */
export async function listConversations(programs: Programs, { from, limit }: ListOf): Promise<Kept> {
  const lists = await Promise.all(
    keepersOf(programs, from).map(({ program, keeping }) => keeping.list(program, { limit })),
  );
  const all = lists.flatMap(({ conversations }) => conversations);
  return {
    conversations: all.toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, limit),
    total: lists.reduce((sum, { total }) => sum + total, 0),
  };
}

interface ListOf {
  readonly from: string | undefined;
  readonly limit: number;
}

/** A handle is as long as its program makes it; a shorter beginning would be found by chance. */
const MIN_CHARS = 8;
const MAX_CANDIDATES = 10;

/** By its handle or the first characters of it. */
export async function findConversation(
  programs: Programs,
  { from, handle }: { readonly from: string | undefined; readonly handle: string },
): Promise<{ readonly conversation: Conversation; readonly keeping: Keeping }> {
  const shown = visibleLine(handle.slice(0, 100));
  if (!/^[\w-]+$/.test(handle) || handle.length < MIN_CHARS)
    throw new HeddleError(
      "usage.invalid",
      `${shown} is no id of a conversation; give its first ${MIN_CHARS} characters or more`,
    );
  const found = await Promise.all(
    keepersOf(programs, from).map(async ({ program, keeping }) =>
      (await keeping.list(program, { handle, limit: MAX_CANDIDATES })).conversations.map((conversation) => ({
        conversation,
        keeping,
      })),
    ),
  );
  const all = found.flat();
  const exact = all.filter(({ conversation }) => conversation.handle === handle);
  const [one, ...more] = exact.length > 0 ? exact : all;
  if (one === undefined)
    throw new HeddleError(
      "thread.not-found",
      `no conversation ${shown} is kept here; heddle threads import --list shows them`,
    );
  if (more.length === 0) return one;
  const names = [one, ...more].map(({ conversation }) => `${conversation.from} ${conversation.handle}`);
  throw new HeddleError("thread.ambiguous", `${shown} may be ${names.join(", ")}; give more of the id, or --from`);
}

/** Far more than anybody has; a list looks no further. */
const MAX_THREADS = 100_000;

/** By which thread a conversation is on record here. */
export async function importedAs({
  threads,
}: Pick<Journal, "threads">): Promise<(conversation: Pick<Conversation, "from" | "handle">) => string | undefined> {
  const known = new Map<string, string>();
  for (const { id, origin } of await threads.list({ limit: MAX_THREADS }))
    if (isImported(origin)) known.set(origin, id);
  return ({ from, handle }) => known.get(originOf({ from, handle }));
}

const ORIGIN = "import:";

/** Of the thread that a conversation is imported as. */
export function originOf({ from, handle }: Pick<Conversation, "from" | "handle">): string {
  return `${ORIGIN}${from}:${handle}`;
}

function isImported(origin: string): boolean {
  return origin.startsWith(ORIGIN);
}
