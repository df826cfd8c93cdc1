/** The calls of outside agents as they are on record: of a turn that runs, and of one that has ended, by whatever cause. */
import { canonical, HeddleError, type Author, type EventOf, type StoredEvent } from "@heddle/protocol";
import type { TurnRow } from "@heddle/journal";
import { eventAt, type ReadJournal } from "../threads/history.ts";
import type { Between } from "./outside-calls.ts";
import type { OutsideCall, OutsideResult, SessionEnd } from "./outside.ts";

const PAGE = 256;
/** Results of one answer. */
const MAX_RESULTS = 100;
/** Of their outputs; one is told whatever it has. */
const MAX_RESULT_CHARS = 4 * 1024 * 1024;
/** Events that are looked at for one answer. */
const MAX_LOOKED = 20_000;

export interface RecordedResult extends OutsideResult {
  readonly callId: string;
  readonly tool: string;
}

export interface Results {
  readonly results: readonly RecordedResult[];
  /** Everything up to here was looked at. */
  readonly cursor: number;
  readonly hasMore: boolean;
}

/** Throws unless it is the caller's. */
export async function sessionOnRecord(
  journal: ReadJournal,
  { turnId, by }: { readonly turnId: string; readonly by: Author },
): Promise<TurnRow> {
  const turn = await journal.threads.turn(turnId);
  const admitted = turn && (await eventAt(journal, turn.threadId, turn.admittedVersion));
  if (turn === undefined || admitted?.body.type !== "turn.admitted" || admitted.body.task !== "outside")
    throw new HeddleError("turn.not-found", `there is no session ${turnId}`);
  if (admitted.author !== by) throw notYours(turnId);
  return turn;
}

export function notYours(turnId: string): HeddleError {
  return new HeddleError("door.forbidden", `turn ${turnId} belongs to another client`);
}

export async function resultsAfter(journal: ReadJournal, turn: TurnRow, after: number): Promise<Results> {
  const results: RecordedResult[] = [];
  let chars = 0;
  const from = Math.max(after, turn.admittedVersion);
  let cursor = from;
  for await (const { body, version } of eventsOf(journal, turn, from)) {
    const isFull = results.length >= MAX_RESULTS || chars > MAX_RESULT_CHARS;
    if (isFull || version - from > MAX_LOOKED) return { results, cursor, hasMore: true };
    cursor = version;
    if (body.type !== "tool.settled" || body.turnId !== turn.id) continue;
    const result = { callId: body.callId, tool: body.tool, ...resultOf(body), cursor: version };
    results.push(result);
    chars += JSON.stringify(result.output).length;
  }
  return { results, cursor, hasMore: false };
}

/** undefined: the call is not on record. Another call under the same id is a conflict. */
export async function findResult(
  journal: ReadJournal,
  turn: TurnRow,
  call: Pick<OutsideCall, "callId"> & Partial<OutsideCall>,
): Promise<OutsideResult | undefined> {
  let intended: EventOf<"tool.intended"> | undefined;
  for await (const { body, version } of eventsOf(journal, turn, turn.admittedVersion)) {
    if (body.type === "tool.intended" && body.callId === call.callId) intended = body;
    if (body.type !== "tool.settled" || body.callId !== call.callId) continue;
    const isOther = call.tool !== undefined && !isSame(journal, body.tool, call.tool);
    const hasOthers =
      intended !== undefined && call.arguments !== undefined && !isSame(journal, intended.arguments, call.arguments);
    if (isOther || hasOthers) {
      const what = isOther ? "for another tool" : "with other arguments";
      throw new HeddleError("store.id-conflict", `the call id ${call.callId} was used before ${what}`);
    }
    return { ...resultOf(body), cursor: version };
  }
  return undefined;
}

/** Secrets are in no record. */
function isSame({ redactor }: ReadJournal, before: unknown, now: unknown): boolean {
  const text = canonical(now);
  return canonical(before) === text || canonical(before) === canonical(redactor.body(now, text));
}

export async function endOf(journal: ReadJournal, turn: TurnRow): Promise<SessionEnd | undefined> {
  if (turn.status === "open" || turn.endedVersion === undefined) return undefined;
  const body = (await eventAt(journal, turn.threadId, turn.endedVersion))?.body;
  const failure = body?.type === "turn.completed" ? body.failure : undefined;
  return { status: turn.status, ...(failure === undefined ? {} : { failure }) };
}

interface InTurn {
  readonly threadId: string;
  readonly turnId: string;
  readonly callId: string;
  readonly between: Between;
}

/** The result of a call that was carried out between two versions. */
export async function resultIn(
  journal: ReadJournal,
  { threadId, turnId, callId, between }: InTurn,
): Promise<OutsideResult> {
  const turn = { id: turnId, threadId, endedVersion: between.upTo };
  for await (const { body } of eventsOf(journal, turn, between.after)) {
    if (body.type !== "tool.settled" || body.turnId !== turnId || body.callId !== callId) continue;
    return { ...resultOf(body), cursor: between.upTo };
  }
  throw new HeddleError("internal", `the result of call ${callId} is not on record`);
}

export function resultOf(end: EventOf<"tool.settled">): Omit<OutsideResult, "cursor"> {
  const { outcome, output, failure, itemId, processId } = end;
  return {
    outcome,
    output,
    itemId,
    ...(failure === undefined ? {} : { failure }),
    ...(processId === undefined ? {} : { processId }),
  };
}

/** Those behind a version, up to the end of the turn. */
async function* eventsOf(
  journal: ReadJournal,
  { threadId: stream, endedVersion: upTo = Infinity }: Pick<TurnRow, "threadId" | "endedVersion">,
  after: number,
): AsyncGenerator<StoredEvent, void, void> {
  for (let from = after; from < upTo;) {
    const limit = Math.min(PAGE, upTo - from);
    const page = await journal.read({ stream, after: from, limit });
    yield* page;
    from = page.at(-1)?.version ?? upTo;
    if (page.length < limit) return;
  }
}
