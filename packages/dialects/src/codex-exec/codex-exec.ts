/**
 * The lines of `codex exec --json`, made from stored events: events of one turn in, in order, lines out. Shapes, names and
 * order are those of codex-cli 0.166; what it lacks (codes, cost, duration, `outcome`) is added beside them, never instead.
 * The only memory is the numbering of items, those that run, the to-do list, and what the turn was asked.
 */
import {
  usageInSnakeCase,
  addUsage,
  shownAnswer,
  type EventOf,
  type Item,
  type ItemOf,
  type StoredEvent,
  type Usage,
} from "@heddle/protocol";
import { details, hookFailure, isShown, runs, speaks, violation, type ItemDetails } from "./codex-exec-items.ts";
import { createPolls, hasOwnFailure } from "./codex-exec-polls.ts";
import type { CodexExecLine, CodexItem } from "./codex-exec-schema.ts";
import { countThreadUsage } from "../thread-usage.ts";

export type { CodexExecLine, CodexItem, CodexUsage } from "./codex-exec-schema.ts";

export interface CodexExecOptions {
  /** Also announce what is said, so that `progress` can show it growing. */
  readonly hasDeltas?: boolean;
  /** What the thread used before this turn; with it the end names the thread's total. */
  readonly usageBefore?: Usage;
}

export interface CodexExecDialect {
  event(event: StoredEvent): readonly CodexExecLine[];
  /** A running item as it is after it has said or printed so much; undefined when it is not running. */
  progress(itemId: string, soFar: string): CodexExecLine | undefined;
}

/** One translator for one run of `exec`. */
export function codexExecDialect(options: CodexExecOptions = {}): CodexExecDialect {
  const numbering = createNumbering();
  const items = createItemLines(numbering, options.hasDeltas === true);
  const spent = countThreadUsage(options.usageBefore);
  /** Why the last answer broke off, while no whole one has come since. */
  let brokenBy: string | undefined;
  const event = ({ stream, body }: StoredEvent): readonly CodexExecLine[] => {
    switch (body.type) {
      case "turn.admitted":
        spent.begin(stream);
        items.begin(body);
        return [{ type: "thread.started", thread_id: stream }];
      case "turn.started":
        return [{ type: "turn.started", turn_id: body.turnId, sandbox: body.sandboxLevel }];
      case "item.started":
        return items.started(body.item);
      case "item.completed":
        return items.completed(body.item);
      case "model.retried":
        if (body.level === "stream" && body.cause.details?.["status"] === undefined) brokenBy = body.cause.code;
        return [retryLine(body)];
      case "path.violated":
        return [numbering.completed(undefined, violation(body))];
      case "hook.ran":
        return body.failure === undefined ? [] : [numbering.completed(undefined, hookFailure(body))];
      case "tool.settled":
        items.settled(body);
        return [];
      case "turn.completed":
        return [...items.end(), ...endLines(body, spent.before(), brokenBy)];
      case "model.responded":
        spent.add(body.usage);
        brokenBy = undefined;
        return [];
      default:
        return [];
    }
  };

  return { event, progress: (itemId, soFar) => items.progress(itemId, soFar) };
}

interface ItemLines {
  begin(admitted: EventOf<"turn.admitted">): void;
  started(item: Item): readonly CodexExecLine[];
  settled(settled: EventOf<"tool.settled">): void;
  completed(item: Item): readonly CodexExecLine[];
  progress: CodexExecDialect["progress"];
  /** The end of what lasts as long as the turn. */
  end(): readonly CodexExecLine[];
}

function createItemLines(numbering: Numbering, hasDeltas: boolean): ItemLines {
  const running = new Map<string, Item>();
  const polls = createPolls();
  let turn: EventOf<"turn.admitted"> | undefined;
  let todo: CodexItem | undefined;

  const planLines = (item: ItemOf<"plan">): readonly CodexExecLine[] => {
    if (item.status !== "completed") return [numbering.completed(item.id, details(item))];
    const items = item.steps.map((step) => ({ text: step.text, completed: step.status === "completed" }));
    const type = todo === undefined ? "item.started" : "item.updated";
    todo = { id: todo?.id ?? numbering.next(), type: "todo_list", items };
    return [{ type, item: todo }];
  };

  return {
    begin(admitted) {
      turn = admitted;
    },
    started(item) {
      if (polls.begins(item)) return [];
      running.set(item.id, item);
      return runs(item) || (hasDeltas && speaks(item)) ? [numbering.started(item.id, details(item))] : [];
    },
    settled: (body) => polls.learn(body),
    completed(item) {
      running.delete(item.id);
      if (item.type === "plan") return planLines(item);
      const poll = polls.ends(item);
      if (poll !== undefined) {
        if (!hasOwnFailure(item)) return [];
        return [numbering.started(poll.id, details(poll)), numbering.completed(item.id, details(item))];
      }
      const shown = item.type === "agentMessage" ? { ...item, text: shownAnswer(turn, item.text) } : item;
      return isShown(shown) || numbering.knows(shown.id) ? [numbering.completed(shown.id, details(shown))] : [];
    },
    progress(itemId, soFar) {
      const item = running.get(itemId);
      // Findings are laid out when they are whole.
      if (turn?.task === "review" && item?.type === "agentMessage" && soFar.trimStart().startsWith("{"))
        return undefined;
      const grown = item === undefined ? undefined : grow(item, soFar);
      return grown === undefined || !numbering.knows(itemId) ? undefined : numbering.updated(itemId, details(grown));
    },
    end() {
      const last: readonly CodexExecLine[] = todo === undefined ? [] : [{ type: "item.completed", item: todo }];
      todo = undefined;
      return last;
    },
  };
}

/** An item with what its deltas have brought so far; undefined for items that have none. */
function grow(item: Item, soFar: string): Item | undefined {
  if (item.type === "agentMessage") return { ...item, text: soFar };
  if (item.type === "reasoning") return { ...item, summary: [soFar] };
  return item.type === "commandExecution" ? { ...item, output: soFar } : undefined;
}

/** Items are numbered in the order in which a run first shows them: item_0, item_1, … */
interface Numbering {
  next(): string;
  knows(id: string): boolean;
  started(id: string, item: ItemDetails): CodexExecLine;
  updated(id: string, item: ItemDetails): CodexExecLine;
  completed(id: string | undefined, item: ItemDetails): CodexExecLine;
}

function createNumbering(): Numbering {
  const known = new Map<string, string>();
  let count = 0;
  const next = (): string => `item_${count++}`;
  const numberOf = (id: string | undefined): string => (id === undefined ? undefined : known.get(id)) ?? next();
  return {
    next,
    knows: (id) => known.has(id),
    started(id, item) {
      const number = next();
      known.set(id, number);
      return { type: "item.started", item: { id: number, ...item } };
    },
    updated: (id, item) => ({ type: "item.updated", item: { id: numberOf(id), ...item } }),
    completed: (id, item) => ({ type: "item.completed", item: { id: numberOf(id), ...item } }),
  };
}

function retryLine(retry: EventOf<"model.retried">): CodexExecLine {
  const { attempt, maxAttempts, round = attempt, maxRounds = maxAttempts, cause } = retry;
  if (retry.level === "request") {
    const { message, code, details } = cause;
    const figures = { attempt, max_attempts: maxAttempts, delay_ms: retry.delayMs };
    return { type: "heddle.retry", message, code, ...(details === undefined ? {} : { details }), ...figures };
  }
  return {
    type: "error",
    // Codex counts retries, not tries: after one failed try of two it is at its first and last.
    message: `Reconnecting... ${round}/${Math.max(round, maxRounds - 1)} (${cause.message})`,
    code: cause.code,
    details: { delay_ms: retry.delayMs },
  };
}

function endLines(
  end: EventOf<"turn.completed">,
  usageBefore: Usage | undefined,
  brokenBy: string | undefined,
): readonly CodexExecLine[] {
  const figures = {
    usage: usageInSnakeCase(end.usage),
    ...(usageBefore === undefined ? {} : { thread_usage: usageInSnakeCase(addUsage(usageBefore, end.usage)) }),
    cost_usd: end.costUsd ?? null,
    duration_ms: end.durationMs,
  };
  if (end.status === "completed") return [{ type: "turn.completed", ...figures }];
  // Callers know a broken answer by Codex's words.
  const before =
    end.failure !== undefined && end.failure.code === brokenBy ? "stream disconnected before completion: " : "";
  const error = {
    message: before + (end.failure?.message ?? `the turn was ${end.status}`),
    ...(end.failure === undefined ? {} : { code: end.failure.code }),
    ...(end.failure?.details === undefined ? {} : { details: end.failure.details }),
  };
  const failed: CodexExecLine = { type: "turn.failed", error, status: end.status, ...figures };
  return end.status === "failed" ? [{ type: "error", ...error }, failed] : [failed];
}
