/**
 * Stored events as spans of traces: one trace for each turn, its model requests, calls of tools, checks, appends and the
 * opening of its sandbox below it. Ids, names of models and tools, codes and counts only: nothing that a user, a model or a
 * command said. A trace has the id of the caller who began one, or that of the turn, so that either finds the other.
 */
import { createHash } from "node:crypto";
import { canonical, type EventOf, type Holder, type StoredEvent } from "@heddle/protocol";
import type { Timed } from "@heddle/protocol/measure";

export type Attributes = Readonly<Record<string, string | number | undefined>>;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly name: string;
  readonly kind: "internal" | "client" | "server";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** The code of the failure. */
  readonly failure: string | undefined;
}

export interface Spans {
  /** What has ended with this event. */
  take(event: StoredEvent): readonly Span[];
  /** Work that was timed beside the record, of a thread. */
  timed(name: "append" | "sandbox", stream: string, timed: Timed): readonly Span[];
}

interface Trace {
  readonly traceId: string;
  readonly spanId: string;
}

interface Running extends Trace {
  readonly turnId: string;
  readonly parentId: string | undefined;
  startMs: number;
  attributes: Attributes;
}

/** A piece of work that has begun: a request, a call, an item, a check. */
interface Begun {
  readonly of: Trace;
  readonly stream: string;
  readonly turnId: string | undefined;
  readonly name: string;
  readonly kind: Span["kind"];
  readonly startMs: number;
  readonly attributes: Attributes;
}

/** Threads and tasks whose last trace is remembered, for what is timed or checked after it. */
const MAX_TRACES = 1_000;
const MAX_BEGUN = 10_000;
/** What is timed before its turn is admitted waits for it. */
const MAX_EARLY = 1_000;
const EARLY_MS = 60_000;
const COMMANDS: ReadonlySet<string> = new Set(["commandExecution", "fileChange", "toolCall", "mcpToolCall"]);

/** What is known of turns that run, and of what has begun in them. */
interface State {
  readonly own: string;
  readonly running: Map<string, Running>;
  /** Of each thread and task, the last one. */
  readonly traces: Map<string, Running>;
  readonly begun: Map<string, Begun>;
  readonly intended: Set<string>;
  readonly early: { readonly name: string; readonly stream: string; readonly timed: Timed }[];
}

/** `self`: turns of other processes are traced by those. */
export function createSpans(self: Holder): Spans {
  const state: State = {
    own: canonical(self),
    running: new Map(),
    traces: new Map(),
    begun: new Map(),
    intended: new Set(),
    early: [],
  };
  const { traces, running, early } = state;
  return {
    take: (event) => take(state, event),
    timed(name, stream, timed) {
      const turn = traces.get(stream);
      if (turn !== undefined && running.has(turn.turnId)) return [timedSpan(turn, name, timed)];
      if (early.push({ name, stream, timed }) > MAX_EARLY) early.shift();
      return [];
    },
  };
}

function begin(
  state: State,
  key: string,
  { stream, at, body }: StoredEvent,
  more: Omit<Begun, "stream" | "startMs" | "turnId" | "of">,
) {
  const of = state.traces.get(stream);
  const turnId = "turnId" in body ? body.turnId : undefined;
  // Without one it is of another process, as a turn is that is not the one here.
  if (of === undefined || (turnId ?? of.turnId) !== of.turnId) return;
  keep(state.begun, key, { ...more, of, stream, startMs: at, turnId }, MAX_BEGUN);
}

function end(
  state: State,
  key: string,
  at: number,
  { failure, attributes = {} }: Pick<Partial<Span>, "failure" | "attributes"> = {},
) {
  const found = state.begun.get(key);
  state.begun.delete(key);
  if (found === undefined) return [];
  const { of, name, kind, startMs, attributes: known } = found;
  return [spanOf(of, key, { name, kind, startMs, endMs: at, failure, attributes: { ...known, ...attributes } })];
}

function admitted(state: State, { stream, at }: StoredEvent, body: EventOf<"turn.admitted">): readonly Span[] {
  if (canonical(body.holder) !== state.own) return [];
  const { turnId, settings, task } = body;
  const caller = parseTraceparent(body.traceparent);
  const trace = { traceId: caller?.traceId ?? hex(turnId), spanId: spanIdOf(turnId) };
  const attributes = {
    "heddle.thread.id": stream,
    "heddle.turn.id": turnId,
    "heddle.turn.task": task,
    "heddle.runner": settings.runner,
    "gen_ai.provider.name": settings.provider,
    "gen_ai.request.model": settings.model,
  };
  const turn = { ...trace, turnId, parentId: caller?.spanId, startMs: at, attributes };
  state.running.set(turnId, turn);
  keep(state.traces, stream, turn, MAX_TRACES);
  const mine = state.early.filter((one) => one.stream === stream && one.timed.beganAt > at - EARLY_MS);
  return mine.map((one) => {
    state.early.splice(state.early.indexOf(one), 1);
    turn.startMs = Math.min(turn.startMs, one.timed.beganAt);
    return timedSpan(turn, one.name, one.timed);
  });
}

function completed(state: State, { at, stream }: StoredEvent, body: EventOf<"turn.completed">): readonly Span[] {
  const turn = state.running.get(body.turnId);
  if (turn === undefined) return [];
  state.running.delete(body.turnId);
  const left = [...state.begun].filter(([, { turnId }]) => turnId === body.turnId);
  const failure = body.failure?.code ?? (body.status === "completed" ? undefined : body.status);
  const ends = left.flatMap(([key]) => end(state, key, at, { failure: failure ?? "turn.interrupted" }));
  for (const key of state.intended) if (key.startsWith(stream)) state.intended.delete(key);
  const attributes = {
    ...turn.attributes,
    "heddle.turn.status": body.status,
    "heddle.cost_usd": body.costUsd,
    ...usageOf(body.usage),
  };
  const { startMs, parentId } = turn;
  const root = { traceId: turn.traceId, spanId: turn.spanId, parentId, failure, attributes };
  return [...ends, { ...root, name: "turn", kind: "server", startMs, endMs: at }];
}

function checked(state: State, { stream, at }: StoredEvent, body: EventOf<"task.checked">): readonly Span[] {
  const failed = body.results.filter(({ outcome }) => outcome !== "passed").length;
  const key = `check ${stream}`;
  return end(state, key, at, {
    failure: body.passed ? undefined : "task.unverified",
    attributes: { "heddle.checks": body.results.length, "heddle.checks.failed": failed },
  });
}

function take(state: State, event: StoredEvent): readonly Span[] {
  const { stream, at, body } = event;
  switch (body.type) {
    case "turn.admitted":
      return admitted(state, event, body);
    case "turn.completed":
      return completed(state, event, body);
    case "model.requested":
      begin(state, body.requestId, event, {
        name: "model request",
        kind: "client",
        attributes: { "gen_ai.provider.name": body.provider, "gen_ai.request.model": body.model },
      });
      return [];
    case "model.retried":
      return retried(state.begun.get(body.requestId), at, body);
    case "model.responded":
      return end(state, body.requestId, at, {
        attributes: { ...usageOf(body.usage), "heddle.cost_usd": body.costUsd },
      });
    case "tool.intended":
      state.intended.add(`${stream} ${body.itemId}`);
      begin(state, `call ${body.callId}`, event, {
        name: "tool call",
        kind: "internal",
        attributes: { "gen_ai.tool.name": body.tool },
      });
      return [];
    case "tool.settled":
      return end(state, `call ${body.callId}`, at, {
        failure: body.failure?.code,
        attributes: { "heddle.tool.outcome": body.outcome },
      });
    case "item.started":
      // Of an agent program, whose calls have no intent here.
      if (COMMANDS.has(body.item.type) && !state.intended.has(`${stream} ${body.item.id}`)) {
        begin(state, `item ${body.item.id}`, event, {
          name: "tool call",
          kind: "internal",
          attributes: { "gen_ai.tool.name": body.item.type },
        });
      }
      return [];
    case "item.completed":
      if (state.intended.has(`${stream} ${body.item.id}`)) state.begun.delete(`item ${body.item.id}`);
      return end(state, `item ${body.item.id}`, at);
    case "task.turn-ended": {
      const turn = [...state.traces.values()].find(({ turnId }) => turnId === body.turnId);
      if (turn !== undefined) keep(state.traces, stream, turn, MAX_TRACES);
      return [];
    }
    case "task.checking":
      if (!state.begun.has(`check ${stream}`))
        begin(state, `check ${stream}`, event, { name: "checks", kind: "internal", attributes: {} });
      return [];
    case "task.checked":
      return checked(state, event, body);
    default:
      return [];
  }
}

function retried(request: Begun | undefined, at: number, body: EventOf<"model.retried">): readonly Span[] {
  if (request === undefined) return [];
  const attributes = { ...request.attributes, "heddle.attempt": body.attempt, "heddle.delay_ms": body.delayMs };
  const more = {
    name: "retry",
    kind: "internal",
    startMs: at,
    endMs: at,
    failure: body.cause.code,
    attributes,
  } as const;
  return [spanOf(request.of, `${body.requestId} ${body.attempt} ${body.level ?? ""} ${body.round ?? ""}`, more)];
}

function timedSpan(of: Trace, name: string, { beganAt, ms, outcome }: Timed): Span {
  const failure = outcome === "ok" ? undefined : outcome;
  const key = `${name} ${beganAt} ${ms}`;
  return spanOf(of, key, { name, kind: "internal", startMs: beganAt, endMs: beganAt + ms, failure, attributes: {} });
}

function spanOf(of: Trace, key: string, more: Omit<Span, "traceId" | "spanId" | "parentId">): Span {
  return { traceId: of.traceId, spanId: spanIdOf(`${of.spanId} ${key}`), parentId: of.spanId, ...more };
}

function usageOf({ inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number }) {
  return { "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens };
}

/** The oldest goes when there are too many. */
function keep<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

function spanIdOf(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, 16);
}

/** A UUID has as many digits as a trace. */
function hex(turnId: string): string {
  const digits = turnId.replaceAll("-", "");
  return /^[0-9a-f]{32}$/.test(digits) ? digits : createHash("sha256").update(turnId).digest("hex").slice(0, 32);
}

function parseTraceparent(text: string | undefined): Trace | undefined {
  const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(text ?? "") ?? [];
  return traceId === undefined || spanId === undefined ? undefined : { traceId, spanId };
}
