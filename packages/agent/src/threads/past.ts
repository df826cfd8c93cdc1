/**
 * What of a thread's past still counts, from tables: ranges of versions in its streams, oldest first. A revert leaves a
 * gap. The cost does not grow with the length of the thread.
 */
import type { TurnRow } from "@heddle/journal";
import type { TurnSettings } from "@heddle/protocol";
import { ancestry, eventAt, readForkPoint, type ForkPoint, type ReadJournal } from "./history.ts";

export interface PastRange {
  readonly stream: string;
  readonly after: number;
  readonly upTo: number;
}

export interface Past {
  /** With reverted turns. */
  readonly parts: readonly PastRange[];
  readonly kept: readonly PastRange[];
}

interface Point {
  readonly part: number;
  readonly version: number;
}

interface Gap {
  readonly from: Point;
  readonly to: Point;
}

export interface PlanOptions {
  readonly forkedFrom?: ForkPoint | undefined;
  readonly upTo?: number | undefined;
}

export async function readPlan(journal: ReadJournal, threadId: string, options: PlanOptions = {}): Promise<Past> {
  const upTo = options.upTo ?? (await journal.version(threadId));
  const own: PastRange = { stream: threadId, after: 0, upTo };
  const inherited = await ancestry(journal, options.forkedFrom ?? (await readForkPoint(journal, threadId)));
  const parts = [...inherited.map((part) => ({ upTo: 0, ...part, after: 0 })), own];
  const gaps: Gap[] = [];
  for (const [part, range] of parts.entries()) {
    for (const { version, body } of await journal.marks.events({ ...range, kinds: ["thread.reverted"] })) {
      if (body.type !== "thread.reverted") continue;
      const from = pointOf(parts, await journal.threads.turn(body.beforeTurnId));
      const to = { part, version };
      // A turn that is not in the past, or not any more, reverts nothing.
      if (from !== undefined && isBefore(from, to) && !gaps.some((gap) => isIn(gap, from))) gaps.push({ from, to });
    }
  }
  return { parts, kept: parts.flatMap((range, part) => withoutGaps(range, part, gaps)) };
}

function pointOf(parts: readonly PastRange[], turn: TurnRow | undefined): Point | undefined {
  if (turn === undefined) return undefined;
  const part = parts.findIndex(({ stream, upTo }) => stream === turn.threadId && turn.admittedVersion <= upTo);
  return part === -1 ? undefined : { part, version: turn.admittedVersion };
}

function isBefore(a: Point, b: Point): boolean {
  return a.part < b.part || (a.part === b.part && a.version < b.version);
}

function isIn({ from, to }: Gap, point: Point): boolean {
  return !isBefore(point, from) && isBefore(point, to);
}

function withoutGaps({ stream, upTo }: PastRange, part: number, gaps: readonly Gap[]): PastRange[] {
  const ranges: PastRange[] = [];
  let after = 0;
  for (const { from, to } of gaps.toSorted((a, b) => (isBefore(a.from, b.from) ? -1 : 1))) {
    if (from.part > part || to.part < part) continue;
    const begin = from.part < part ? 1 : from.version;
    if (begin - 1 > after) ranges.push({ stream, after, upTo: begin - 1 });
    after = Math.max(after, to.part > part ? upTo : to.version - 1);
  }
  if (after < upTo) ranges.push({ stream, after, upTo });
  return ranges;
}

export function isKept({ kept }: Past, turn: TurnRow): boolean {
  return kept.some((range) => holds(range, turn));
}

function holds({ stream, after, upTo }: PastRange, { threadId, admittedVersion: version }: TurnRow): boolean {
  return stream === threadId && version > after && version <= upTo;
}

/** From the newest one, or from one that is kept. */
export async function* turnsBack(
  journal: ReadJournal,
  { kept }: Past,
  from?: TurnRow,
): AsyncGenerator<TurnRow & { readonly range: PastRange }> {
  const last = from === undefined ? kept.length - 1 : kept.findIndex((range) => holds(range, from));
  for (const [index, range] of [...kept.slice(0, last + 1).entries()].toReversed()) {
    const upTo = index === last && from !== undefined ? from.admittedVersion : range.upTo;
    let turn = await journal.threads.lastTurn(range.stream, upTo);
    while (turn !== undefined && turn.admittedVersion > range.after) {
      yield { ...turn, range };
      turn = await journal.threads.lastTurn(range.stream, turn.admittedVersion - 1);
    }
  }
}

export async function lastTurnOf(journal: ReadJournal, past: Past): Promise<TurnRow | undefined> {
  for await (const turn of turnsBack(journal, past)) return turn;
  return undefined;
}

/** The settings of the thread's last turn; undefined when it has had none. */
export async function readLastSettings(journal: ReadJournal, threadId: string): Promise<TurnSettings | undefined> {
  const turn = await lastTurnOf(journal, await readPlan(journal, threadId));
  const body = turn && (await eventAt(journal, turn.threadId, turn.admittedVersion))?.body;
  return body?.type === "turn.admitted" ? withHop(journal, threadId, body.settings) : undefined;
}

/** The settings of a turn with the envelope that its thread has hopped to since. */
export async function withHop(
  { threads }: Pick<ReadJournal, "threads">,
  threadId: string,
  settings: TurnSettings,
): Promise<TurnSettings> {
  const row = await threads.envelope(threadId);
  if (row === undefined || row.isLeft || (row.cause !== "hop" && row.cause !== "back")) return settings;
  const { id, sandbox, writeRoots } = row.envelope;
  const inside = writeRoots.length === 0 ? "read-only" : "workspace-write";
  return { ...settings, envelope: id, sandboxMode: sandbox === "off" ? "danger-full-access" : inside };
}
