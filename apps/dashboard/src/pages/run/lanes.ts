/** Where the time went, as two lanes of wall time: the model, and the tools. A picture of the list of steps. */
import type { StreamedEvent, Turn } from "@heddle/protocol/http";
import type { Entry } from "./steps.ts";

export interface Span {
  readonly lane: "model" | "tools" | "both";
  readonly kind: "plain" | "failed" | "hung" | "asked" | "passed" | "rejected" | "verified";
  readonly from: number;
  readonly to: number;
  /** Of the step that it leads to. */
  readonly key?: string;
}
export interface Tick {
  readonly at: number;
  readonly text: string;
  readonly tone: "" | "no" | "say" | "you" | "ok";
}
export interface Lanes {
  readonly from: number;
  readonly to: number;
  readonly spans: readonly Span[];
  readonly ticks: readonly Tick[];
  /** The same as one sentence. */
  readonly sentence: string;
}

interface Told {
  readonly items: readonly Entry[];
  readonly turns: readonly Turn[];
  readonly log: readonly StreamedEvent[];
  readonly now: number;
  readonly askedAt: number | undefined;
}

const TOOLS = new Set([
  "commandExecution",
  "fileChange",
  "toolCall",
  "mcpToolCall",
  "collabToolCall",
  "imageView",
  "webSearch",
]);

export function lanesOf({ items, turns, log, now, askedAt }: Told): Lanes | undefined {
  const oldest = turns.toSorted((a, b) => a.admittedAt - b.admittedAt);
  const first = oldest[0];
  if (first === undefined) return undefined;
  const ends = oldest.map(({ endedAt }) => endedAt ?? now);
  const lastLog = log.findLast(({ body }) => body.type === "task.checked" || body.type === "task.verified")?.at ?? 0;
  const from = first.admittedAt;
  const to = Math.max(...ends, lastLog, from + 1);
  const tools = items.filter(({ item }) => TOOLS.has(item.type)).map((entry) => toolSpan(entry, now));
  const asked = askedSpans(log, askedAt, now);
  const hung = log.flatMap(({ body, at }): readonly Span[] =>
    body.type === "task.stalled"
      ? [{ lane: "tools", kind: "hung", from: at - body.quietMs, to: stallEnd(log, body.episode, now) }]
      : [],
  );
  const model = oldest.flatMap(({ admittedAt, endedAt = now }) => gaps(admittedAt, endedAt, [...tools, ...asked]));
  const checks = checkSpans(log);
  return {
    from,
    to,
    spans: [...model, ...tools, ...hung, ...asked, ...checks],
    ticks: ticksOf(oldest, { checks, hung, asked }),
    sentence: sentenceOf({ model, tools, hung, asked, checks }),
  };
}

function toolSpan({ item, startedAt, completedAt }: Entry, now: number): Span {
  const hasFailed =
    (item.type === "commandExecution" && item.exitCode !== undefined && item.exitCode !== 0) ||
    ("status" in item && (item.status === "failed" || item.status === "unknown"));
  return { lane: "tools", kind: hasFailed ? "failed" : "plain", from: startedAt, to: completedAt ?? now, key: item.id };
}

function stallEnd(log: readonly StreamedEvent[], episode: number, now: number): number {
  const end = log.find(({ body }) => body.type === "task.recovered" && body.episode === episode);
  return end?.at ?? log.find(({ body }) => body.type === "task.stall-acted" && body.episode === episode)?.at ?? now;
}

function askedSpans(log: readonly StreamedEvent[], askedAt: number | undefined, now: number): readonly Span[] {
  const spans: Span[] = [];
  let from: number | undefined;
  for (const { body, at } of log) {
    if (body.type === "task.waited" && body.cause === "approval") from ??= at;
    else if (from !== undefined && (body.type === "task.woken" || body.type === "task.turn-ended")) {
      spans.push({ lane: "both", kind: "asked", from, to: at });
      from = undefined;
    }
  }
  if (askedAt !== undefined) spans.push({ lane: "both", kind: "asked", from: askedAt, to: now });
  return spans;
}

/** In a turn the model is asked whenever no tool runs and nobody is waited for. */
function gaps(from: number, to: number, busy: readonly Span[]): readonly Span[] {
  const inside = busy.filter((span) => span.to > from && span.from < to).toSorted((a, b) => a.from - b.from);
  const found: Span[] = [];
  let at = from;
  for (const span of inside) {
    if (span.from > at) found.push({ lane: "model", kind: "plain", from: at, to: Math.min(span.from, to) });
    at = Math.max(at, span.to);
  }
  if (at < to) found.push({ lane: "model", kind: "plain", from: at, to });
  return found;
}

function checkSpans(log: readonly StreamedEvent[]): readonly Span[] {
  return log.flatMap(({ body, at, id }): readonly Span[] => {
    if (body.type !== "task.checked") return [];
    const ms = body.durationMs ?? body.results.reduce((sum, { durationMs }) => sum + durationMs, 0);
    const isVerified = log.some((later) => later.body.type === "task.verified" && later.body.attempt === body.attempt);
    const kind = !body.passed ? "rejected" : isVerified ? "verified" : "passed";
    return [{ lane: "both", kind, from: at - ms, to: at, key: id }];
  });
}

type Parts = Readonly<Record<"checks" | "hung" | "asked", readonly Span[]>>;

function ticksOf(turns: readonly Turn[], { checks, hung, asked }: Parts): readonly Tick[] {
  return [
    ...turns.map(({ admittedAt }, index): Tick => ({ at: admittedAt, text: `turn ${index + 1}`, tone: "" })),
    ...checks.map(({ from, kind }): Tick => ({
      at: from,
      text: kind === "passed" ? "checks passed" : kind,
      tone: kind === "rejected" ? "no" : kind === "verified" ? "ok" : "",
    })),
    ...hung.map(({ from, to }): Tick => ({ at: from, text: `hung ${seconds(to - from)}`, tone: "say" })),
    ...asked.map(({ from, to }): Tick => ({ at: from, text: `${seconds(to - from)}: waits for you`, tone: "you" })),
  ].toSorted((a, b) => a.at - b.at);
}

function sentenceOf({
  model,
  tools,
  hung,
  asked,
  checks,
}: Parts & Readonly<Record<"model" | "tools", readonly Span[]>>): string {
  const parts: readonly (readonly [string, readonly Span[]])[] = [
    ["model", model],
    ["tools", tools],
    ["hung", hung],
    ["checks", checks],
    ["waiting for you", asked],
  ];
  const said = parts.flatMap(([name, spans]) => (spans.length === 0 ? [] : [`${name} ${seconds(total(spans))}`]));
  return `Where the time went: ${said.join(", ")}`;
}

function total(spans: readonly Span[]): number {
  return spans.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
}

function seconds(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 3_600_000).toFixed(1)} h`;
}
