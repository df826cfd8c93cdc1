/**
 * What a turn goes on from: the events that the model is told of, and those that still say something about the thread, without
 * what lies before the last compaction. Folded, it comes to the same conversation as the whole past does, byte for byte.
 *
 *   marks (what is kept of before) ─▶ from where the last compaction cut ─▶ the open turn, whole
 */
import type { MarkKind } from "@heddle/journal";
import { inputItemId, type EventBody, type EventOf, type EventType, type StoredEvent } from "@heddle/protocol";
import { eventAt, readParts, readStream, withoutReverted, type ForkPoint, type ReadJournal } from "./history.ts";
import { readPlan, type Past, type PastRange } from "./past.ts";

/** Shorter pasts are read whole: they are mostly in memory, and selecting would cost more. */
const SHORT_EVENTS = 1000;
const PAGE = 256;

/** `forkedFrom`: of a thread that begins with this turn. */
export async function readResumed(
  journal: ReadJournal,
  threadId: string,
  forkedFrom?: ForkPoint,
): Promise<StoredEvent[]> {
  const past = await readPlan(journal, threadId, { forkedFrom });
  if (past.parts.reduce((sum, { upTo }) => sum + upTo, 0) <= SHORT_EVENTS) {
    return withoutReverted(await readParts(journal, [...past.parts.slice(0, -1), { stream: threadId }]));
  }
  return new Resuming(journal, past).read();
}

/** For each stream of a thread: the version after which a turn reads it. */
export async function resumedFrom(journal: ReadJournal, threadId: string): Promise<readonly PastRange[]> {
  const past = await readPlan(journal, threadId);
  const begin = await new Resuming(journal, past).begin();
  const from = begin.range;
  return past.parts.map((part) => {
    const first = past.kept.findIndex(({ stream }) => stream === part.stream);
    const after = part.stream === past.kept[from]?.stream ? begin.version - 1 : first < from ? part.upTo : 0;
    return { ...part, after };
  });
}

interface Point {
  readonly range: number;
  readonly version: number;
}

type Compaction = StoredEvent<EventOf<"context.compacted">>;

class Resuming {
  readonly #journal: ReadJournal;
  readonly #past: Past;
  #compaction: Compaction | undefined;

  constructor(journal: ReadJournal, past: Past) {
    this.#journal = journal;
    this.#past = past;
  }

  async read(): Promise<StoredEvent[]> {
    const begin = await this.begin();
    const events = await this.#before(begin);
    const open = await this.#openTurn();
    for (const [range, { stream, after, upTo }] of this.#past.kept.entries()) {
      if (range < begin.range) continue;
      const from = range === begin.range ? begin.version - 1 : after;
      const whole = open?.range === range ? Math.max(from, open.version - 1) : upTo;
      await this.#readContext(events, { stream, after: from, upTo: whole });
      if (whole < upTo) events.push(...(await readStream(this.#journal, stream, { after: whole, upTo })));
    }
    return events;
  }

  /** Where reading whole events begins: of earlier events only marks count. */
  async begin(): Promise<Point> {
    const [last] = await this.#marked(["context.compacted"], undefined, 1);
    const compaction = last !== undefined && isCompaction(last) ? last : undefined;
    this.#compaction = compaction;
    let begin: Point = { range: 0, version: 1 };
    if (compaction !== undefined) {
      begin = await this.#cutOf(compaction);
      for (let isSettled = false; !isSettled;) {
        const earlier = await this.#marked(["context.compacted"], undefined, undefined, begin);
        const cuts = await Promise.all(earlier.filter(isCompaction).map((event) => this.#cutOf(event)));
        const first = cuts.reduce((a, b) => (isBefore(b, a) ? b : a), begin);
        isSettled = !isBefore(first, begin);
        begin = first;
      }
    }
    // Whoever continues an open turn needs all of it.
    const open = await this.#openTurn();
    return open !== undefined && isBefore(open, begin) ? open : begin;
  }

  async #openTurn(): Promise<Point | undefined> {
    const own = this.#past.parts.at(-1);
    const turn = own && (await this.#journal.threads.lastTurn(own.stream));
    return turn?.status === "open" ? this.#pointOf(turn.threadId, turn.admittedVersion) : undefined;
  }

  #pointOf(stream: string, version: number): Point | undefined {
    const isThere = (range: PastRange): boolean =>
      range.stream === stream && version > range.after && version <= range.upTo;
    const range = this.#past.kept.findIndex(isThere);
    return range === -1 ? undefined : { range, version };
  }

  /** Where the part of the conversation begins that a compaction kept. */
  async #cutOf({ stream, version, body: { keptFrom } }: Compaction): Promise<Point> {
    const own = this.#pointOf(stream, version) ?? { range: 0, version: 1 };
    if (keptFrom === undefined) return own;
    const named = await this.#named(keptFrom);
    if (named !== undefined) return this.#pointOf(named.stream, named.version) ?? own;
    return (await this.#answer(keptFrom, own)) ?? own;
  }

  async #named(name: string): Promise<StoredEvent | undefined> {
    const turn = await this.#journal.threads.turn(name);
    if (turn !== undefined) return eventAt(this.#journal, turn.threadId, turn.admittedVersion);
    for (const { stream } of this.#past.parts) {
      const [event] = await this.#journal.marks.events({ stream, kinds: ["userMessage"], name });
      if (event !== undefined) return event;
    }
    return undefined;
  }

  /** The answer to a request, searched backwards: what lies between is read in any case. */
  async #answer(requestId: string, before: Point): Promise<Point | undefined> {
    for (let range = before.range; range >= 0; range -= 1) {
      const { stream, after, upTo } = this.#past.kept[range] ?? { stream: "", after: 0, upTo: 0 };
      for (let end = range === before.range ? before.version : upTo; end > after; end -= PAGE) {
        const from = Math.max(after, end - PAGE);
        const page = await this.#journal.read({ stream, after: from, limit: end - from, types: ["model.responded"] });
        const isIt = ({ version, body }: StoredEvent): boolean =>
          version <= end && body.type === "model.responded" && body.requestId === requestId;
        const found = page.find(isIt);
        if (found !== undefined) return { range, version: found.version };
      }
    }
    return undefined;
  }

  /** Marked events that count, in order: all, the newest, or those from one position on. */
  async #marked(kinds: readonly MarkKind[], before?: Point, newest?: number, from?: Point): Promise<StoredEvent[]> {
    const found: StoredEvent[] = [];
    for (const [range, { stream, after, upTo }] of [...this.#past.kept.entries()].toReversed()) {
      if ((before !== undefined && range > before.range) || (from !== undefined && range < from.range)) continue;
      const look = {
        stream,
        kinds,
        after: range === from?.range ? Math.max(after, from.version - 1) : after,
        upTo: range === before?.range ? Math.min(upTo, before.version - 1) : upTo,
        ...(newest === undefined ? {} : { newest: newest - found.length }),
      };
      found.unshift(...(await this.#journal.marks.events(look)));
      if (newest !== undefined && found.length >= newest) break;
    }
    return found;
  }

  async #before(begin: Point): Promise<StoredEvent[]> {
    if (begin.range === 0 && begin.version === 1) return [];
    const names = this.#compaction?.body.keptMessages.map(({ name }) => name) ?? [];
    const compactions = await this.#marked(["context.compacted"], begin);
    const accepted = await this.#marked(["acceptedForThread"], begin);
    const found = [
      ...(await this.#marked(["context.left-out", "hop.taken"], begin)),
      ...(await this.#marked(["context.loaded"], begin, 1)),
      ...compactions.filter(isCompaction).map((event) => sparse(event, names)),
      ...accepted,
      ...(await this.#questionsOf(accepted)),
      ...(await this.#messages(names)),
      ...(await this.#facts()),
      ...(await this.#inputAt(begin)),
    ];
    const isOnce = new Set<string>();
    const order = (event: StoredEvent): number => this.#past.parts.findIndex(({ stream }) => stream === event.stream);
    return found
      .filter((event) => {
        const point = this.#pointOf(event.stream, event.version);
        // Reverted events do not count, except facts about the thread itself.
        if (point === undefined ? !event.body.type.startsWith("thread.") : !isBefore(point, begin)) return false;
        const isNew = !isOnce.has(event.id);
        isOnce.add(event.id);
        return isNew;
      })
      .toSorted((a, b) => order(a) - order(b) || a.version - b.version);
  }

  async #questionsOf(accepted: readonly StoredEvent[]): Promise<StoredEvent[]> {
    const questions: StoredEvent[] = [];
    for (const { stream, body } of accepted) {
      if (body.type !== "approval.resolved") continue;
      const look = { stream, kinds: ["approval.requested"], name: body.approvalId } as const;
      questions.push(...(await this.#journal.marks.events(look)));
    }
    return questions;
  }

  /** Messages that the last compaction kept; with steering, the input of its turn. */
  async #messages(names: readonly string[]): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    for (const name of names) {
      const event = await this.#named(name);
      if (event === undefined) continue;
      const input =
        event.body.type === "item.completed" ? await this.#named(inputItemId(event.body.turnId)) : undefined;
      events.push(...(input === undefined ? [] : [input]), event);
    }
    return events;
  }

  /** Facts about the thread. What its goal has used is read by whoever says it (`readGoal`). */
  async #facts(): Promise<StoredEvent[]> {
    const facts: StoredEvent[] = [];
    for (const { stream, upTo } of this.#past.parts) {
      facts.push(...(await this.#journal.marks.events({ stream, kinds: ["thread.goal-changed"], upTo })));
      const look = { stream, kinds: ["thread.tools-declared"], upTo, newest: 1 } as const;
      facts.push(...(await this.#journal.marks.events(look)));
    }
    return facts;
  }

  /** The input of a turn that is open where reading begins: steering is recognized by it. */
  async #inputAt({ range, version }: Point): Promise<StoredEvent[]> {
    const { stream } = this.#past.kept[range] ?? {};
    const turn = stream === undefined ? undefined : await this.#journal.threads.lastTurn(stream, version - 1);
    if (turn === undefined || (turn.endedVersion ?? Infinity) < version) return [];
    const input = await this.#named(inputItemId(turn.id));
    return input === undefined ? [] : [input];
  }

  async #readContext(events: StoredEvent[], { stream, after, upTo }: PastRange): Promise<void> {
    for (let from = after; from < upTo;) {
      const page = await this.#journal.read({ stream, after: from, limit: PAGE, types: CONTEXT_TYPES });
      for (const event of page) if (event.version <= upTo && isContext(event.body)) events.push(event);
      from = page.length < PAGE ? upTo : (page.at(-1)?.version ?? upTo);
    }
  }
}

/** What later turns use. */
const CONTEXT_TYPES: readonly EventType[] = [
  "context.loaded",
  "context.added",
  "context.injected",
  "context.compacted",
  "context.left-out",
  "turn.admitted",
  "turn.completed",
  "hook.ran",
  "item.completed",
  "model.responded",
  "tool.settled",
  "hop.taken",
  "approval.requested",
  "approval.resolved",
  "thread.tools-declared",
  "thread.goal-changed",
];

/** Of items of ended turns only these add to what their answers and results say. */
function isContext(body: EventBody): boolean {
  if (body.type !== "item.completed") return true;
  const { item } = body;
  if (item.type === "commandExecution") return item.processId !== undefined;
  return item.type === "userMessage" || item.type === "plan" || item.type === "notice";
}

function isCompaction(event: StoredEvent): event is Compaction {
  return event.body.type === "context.compacted";
}

/** An earlier compaction, reduced to how short it made the messages that are still kept. */
function sparse(event: Compaction, names: readonly string[]): StoredEvent {
  const { keptFrom: _, keptMessages, ...body } = event.body;
  const kept = names.map((name) => keptMessages.find((message) => message.name === name) ?? { name });
  return { ...event, body: { ...body, summary: "", keptMessages: kept } };
}

function isBefore(a: Point, b: Point): boolean {
  return a.range < b.range || (a.range === b.range && a.version < b.version);
}
