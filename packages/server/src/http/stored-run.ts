/**
 * A run as it is stored, for a file that shows it: read once from the journal and cut to a size that can be sent. What is
 * newest is kept whole first, and what is left out is counted where it was.
 */
import type { Journal } from "@heddle/journal";
import { defined, HeddleError, type Item, type TaskRecord } from "@heddle/protocol";
import {
  streamedEvent,
  type StoredItem,
  type StoredRun,
  type StoredStream,
  type TaskDiff,
} from "@heddle/protocol/http";
import { threadDiff } from "./thread-diff.ts";
import { taskNow } from "./task-now.ts";
import { attemptsOf, taskView } from "./task-views.ts";
import { eventsAfter, requireThread, threadView, turnViews } from "./views.ts";

export interface StoredRunRequest {
  readonly version: string;
  readonly task: TaskRecord | undefined;
  readonly threadId: string | undefined;
  /** Of a task, as it is on disk; without it, the edits as they were recorded. */
  readonly diff: TaskDiff | undefined;
  readonly verdict: StoredRun["verdict"];
  /** 1: everything that a file holds at most; smaller: that share of it. */
  readonly share: number;
}

const MAX_STEPS = 2_000;
const MAX_TURNS = 200;
const MAX_ENTRIES = 2_000;
/** Of one output or message, and of all of them. */
const MAX_TEXT_BYTES = 32_000;
const MAX_TEXTS_BYTES = 2_000_000;

export async function storedRun(journal: Journal, request: StoredRunRequest): Promise<StoredRun> {
  const { task, threadId = task?.threadId, share, version, verdict } = request;
  if (task === undefined && threadId === undefined) throw new HeddleError("internal", "neither a task nor a thread");
  const thread = threadId === undefined ? undefined : await requireThread(journal, threadId);
  const steps = threadId === undefined ? NO_STEPS : await readSteps(journal, threadId, Math.ceil(MAX_STEPS * share));
  const turns = threadId === undefined ? [] : (await journal.threads.turns(threadId)).toReversed();
  const log = task === undefined ? NO_LOG : await readLog(journal, task.id, Math.ceil(MAX_ENTRIES * share));
  const cut = openCut({ each: MAX_TEXT_BYTES * share, all: MAX_TEXTS_BYTES * share });
  const shownTurns = turns.slice(0, Math.ceil(MAX_TURNS * share));
  // The newest first: it is what the run came to.
  const items = steps.items.toReversed().map((entry) => ({ ...entry, item: cut.item(entry.item) }));
  const entries = log.entries.toReversed().map((event) => ({ ...event, body: cut.checks(event.body) }));
  return {
    version,
    at: Date.now(),
    task: task === undefined ? undefined : { ...taskView(task), ...(await taskNow(journal, task)) },
    thread: thread === undefined ? undefined : await threadView(journal, thread),
    attempts: task === undefined ? [] : await attemptsOf(journal, task.id),
    turns: await turnViews(journal, shownTurns),
    items: items.toReversed(),
    log: entries.toReversed(),
    changes:
      request.diff ?? (threadId === undefined ? undefined : await threadDiff(journal, threadId, { turnId: undefined })),
    streams: [...log.streams, ...steps.streams],
    verdict,
    leftOut: {
      steps: steps.leftOut,
      turns: turns.length - shownTurns.length,
      entries: log.leftOut,
      bytes: steps.bytes + cut.leftOut(),
    },
  };
}

interface Steps {
  readonly items: readonly StoredItem[];
  readonly leftOut: number;
  readonly bytes: number;
  readonly streams: readonly StoredStream[];
}
const NO_STEPS: Steps = { items: [], leftOut: 0, bytes: 0, streams: [] };

/** The newest ones; texts that are far too long are cut at once, so that they are not held. */
async function readSteps(journal: Journal, threadId: string, max: number): Promise<Steps> {
  const items = new Map<string, StoredItem>();
  const held = openCut({ each: MAX_TEXT_BYTES, all: Number.POSITIVE_INFINITY });
  let [events, leftOut, head]: [number, number, string | undefined] = [0, 0, undefined];
  for await (const { body, at, version, hash } of eventsAfter(journal, threadId, 0)) {
    events = version;
    head = hash;
    if (body.type === "item.started") {
      items.set(body.item.id, { seq: version, turnId: body.turnId, item: body.item, startedAt: at });
      const [oldest] = items.keys();
      if (items.size <= max || oldest === undefined) continue;
      items.delete(oldest);
      leftOut += 1;
    }
    if (body.type !== "item.completed") continue;
    const entry = items.get(body.item.id);
    if (entry === undefined) continue;
    items.set(body.item.id, { ...entry, item: held.item(body.item), completedAt: at, hash });
  }
  return { items: [...items.values()], leftOut, bytes: held.leftOut(), streams: [{ stream: threadId, events, head }] };
}

interface Log {
  readonly entries: StoredRun["log"];
  readonly leftOut: number;
  readonly streams: readonly StoredStream[];
}
const NO_LOG: Log = { entries: [], leftOut: 0, streams: [] };

async function readLog(journal: Journal, taskId: string, max: number): Promise<Log> {
  const entries: StoredRun["log"][number][] = [];
  let [events, leftOut, head]: [number, number, string | undefined] = [0, 0, undefined];
  for await (const event of eventsAfter(journal, taskId, 0)) {
    events = event.version;
    head = event.hash;
    entries.push(streamedEvent(event));
    if (entries.length <= max) continue;
    entries.shift();
    leftOut += 1;
  }
  return { entries, leftOut, streams: [{ stream: taskId, events, head }] };
}

interface Cut {
  readonly item: (item: Item) => Item;
  readonly checks: (body: StoredRun["log"][number]["body"]) => StoredRun["log"][number]["body"];
  readonly leftOut: () => number;
}

function openCut({ each, all }: { readonly each: number; readonly all: number }): Cut {
  let left = all;
  let leftOut = 0;
  const take = (text: string): { readonly text: string; readonly bytes: number } => {
    const kept = inTheMiddle(text, Math.min(each, Math.max(0, left)));
    left -= Buffer.byteLength(kept.text);
    leftOut += kept.bytes;
    return kept;
  };
  /** With a mark of its own, where the shape has no place for one. */
  const marked = (whole: string): string => {
    const { text, bytes } = take(whole);
    return bytes === 0 ? text : `${text}\n… ${bytes.toLocaleString("en")} bytes are left out of this file`;
  };
  const item = (given: Item): Item => {
    switch (given.type) {
      case "commandExecution": {
        const { text, bytes } = take(given.output);
        return { ...given, output: text, ...truncated(given.truncatedBytes, bytes) };
      }
      case "toolCall": {
        const { text, bytes } = take(given.output ?? "");
        const whole = given.output === undefined ? {} : { output: text };
        return { ...given, ...whole, ...truncated(given.truncatedBytes, bytes) };
      }
      case "mcpToolCall": {
        const text = given.result === undefined ? "" : JSON.stringify(given.result);
        const { bytes } = take(text);
        return bytes === 0
          ? given
          : { ...given, result: { content: [`${bytes.toLocaleString("en")} bytes are left out of this file`] } };
      }
      case "fileChange":
        return {
          ...given,
          changes: given.changes.map((change) => {
            const { text, bytes } = take(change.diff);
            const more = (change.diffTruncatedBytes ?? 0) + bytes;
            return { ...change, diff: text, ...defined({ diffTruncatedBytes: more === 0 ? undefined : more }) };
          }),
        };
      case "agentMessage":
      case "proposedPlan":
        return { ...given, text: marked(given.text) };
      case "userMessage":
        return {
          ...given,
          content: given.content.map((part) =>
            part.type === "image" ? { ...part, base64: "" } : { ...part, text: marked(part.text) },
          ),
        };
      default:
        return given;
    }
  };
  return {
    item,
    checks: (body) =>
      body.type !== "task.checked"
        ? body
        : {
            ...body,
            results: body.results.map((result) =>
              result.output === undefined ? result : { ...result, output: marked(result.output) },
            ),
          },
    leftOut: () => leftOut,
  };
}

function truncated(before: number | undefined, bytes: number): { readonly truncatedBytes?: number } {
  const all = (before ?? 0) + bytes;
  return all === 0 ? {} : { truncatedBytes: all };
}

/** The beginning says what it is, the end how it ended. */
function inTheMiddle(text: string, max: number): { readonly text: string; readonly bytes: number } {
  const whole = Buffer.from(text);
  if (whole.length <= max) return { text, bytes: 0 };
  const [head, tail] = [Math.floor(max / 4), Math.floor((3 * max) / 4)];
  const beginning = onlyWhole(whole.subarray(0, head).toString());
  const end = tail === 0 ? "" : onlyWhole(whole.subarray(-tail).toString());
  const kept = beginning === "" && end === "" ? "" : `${beginning}\n…\n${end}`;
  return { text: kept, bytes: whole.length - Buffer.byteLength(beginning) - Buffer.byteLength(end) };
}

/** A character that was cut through is left out with the rest. */
function onlyWhole(text: string): string {
  return text.replace(/^\uFFFD+|\uFFFD+$/g, "");
}
