/**
 * Short requests outside the conversation: a title after the first turn of a chat, and summaries on request. No tools,
 * no history, few at once, and no turn waits for them; only usage is stored. When a title fails, the chat keeps its
 * first words.
 */
import { resolveProvider, streamModel, type ModelEvent, type ProviderConfig } from "@heddle/models";
import {
  HeddleError,
  NO_USAGE,
  toHeddleError,
  visibleLine,
  type EventOf,
  type Item,
  type TurnSettings,
} from "@heddle/protocol";
import type { Journal, ThreadRow } from "@heddle/journal";
import { appendAt } from "../threads/append-at.ts";
import { lineage } from "../threads/history.ts";
import { readLastSettings } from "../threads/past.ts";
import { shortAnswer, shortLimit, shortRequest } from "./short-run.ts";
import { createSlots } from "./slots.ts";

export interface BackgroundOptions {
  readonly journal: Journal;
  readonly providers: readonly ProviderConfig[];
  readonly env: NodeJS.ProcessEnv;
  /** A model of the thread's provider, or `provider:model`; absent: the thread's own. */
  readonly model?: string | undefined;
  readonly timeoutMs?: number;
}

type Purpose = Exclude<EventOf<"background.ran">["purpose"], "sample">;

const MAX_RUNNING = 2;
/** More chats than this that wait for a title keep their first words. */
const MAX_WAITING = 100;
const TIMEOUT_MS = 10_000;
const ATTEMPTS = 2;
const MAX_TITLE_CHARS = 60;
const MAX_TEXT_CHARS = 2_000;
const MAX_SUMMARY_CHARS = 20_000;
const MAX_OUTPUT_TOKENS = { title: 200, summary: 1_000 } as const;
/** A chat that gets no title by then keeps its first words. */
const MAX_UNTITLED_TURNS = 20;
/** Threads of other doors are named by users. */
const CHAT_ORIGIN = "chat:";

export function openBackground(options: BackgroundOptions): Background {
  return new Background(options);
}

export class Background implements AsyncDisposable {
  readonly #options: BackgroundOptions;
  readonly #closing = new AbortController();
  readonly #slots = createSlots({ running: MAX_RUNNING, waiting: MAX_WAITING });
  readonly #under = new Set<Promise<unknown>>();
  readonly #following: Promise<void>;

  constructor(options: BackgroundOptions) {
    this.#options = options;
    this.#following = this.#follow();
  }

  async summarise(threadId: string): Promise<string | undefined> {
    const transcriptText = await transcript(this.#options.journal, threadId, MAX_SUMMARY_CHARS);
    return this.#track(this.#run(threadId, "summary", transcriptText));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new HeddleError("turn.interrupted", "Heddle is closing"));
    await Promise.allSettled([this.#following, ...this.#under]);
  }

  async #follow(): Promise<void> {
    const { journal } = this.#options;
    const { signal } = this.#closing;
    try {
      const after = await journal.position();
      for await (const { stream, body } of journal.tail({ after, signal })) {
        if (body.type === "turn.completed" && body.status === "completed")
          this.#track(this.#title(stream)).catch(() => undefined);
      }
    } catch {
      // A journal that can no longer be followed is reported by others; titles can be missing.
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const tracked = work.finally(() => this.#under.delete(tracked));
    this.#under.add(tracked);
    tracked.catch(() => undefined);
    return tracked;
  }

  async #title(threadId: string): Promise<void> {
    const { journal } = this.#options;
    const row = await journal.threads.get(threadId);
    if (row === undefined || !wantsTitle(row)) return;
    if (row.turnCount > MAX_UNTITLED_TURNS) return;
    const ended = (await journal.threads.turns(threadId)).filter(({ status }) => status === "completed");
    if (ended.length !== 1) return;
    const transcriptText = await transcript(journal, threadId, MAX_TEXT_CHARS);
    const title = cleanTitle((await this.#run(threadId, "title", transcriptText)) ?? "");
    if (title !== undefined) await this.#name(threadId, title);
  }

  /** A name that the user gives meanwhile wins. */
  async #name(threadId: string, name: string): Promise<void> {
    const { journal } = this.#options;
    await appendAt(journal, threadId, async (expectedVersion) => {
      const row = await journal.threads.get(threadId);
      if (row === undefined || !wantsTitle(row)) return;
      const events = [{ type: "thread.named", v: 1, name }] as const;
      await journal.append({ stream: threadId, author: "system", events, expectedVersion });
    });
  }

  /** undefined: no answer. Usage is stored either way. */
  async #run(threadId: string, purpose: Purpose, transcriptText: string): Promise<string | undefined> {
    const settings = await readLastSettings(this.#options.journal, threadId);
    if (settings === undefined) return undefined;
    using slot = await this.#slots.take(this.#closing.signal);
    if (slot === undefined) return undefined;
    const { provider, model } = choose(this.#options.model, settings);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const startedAt = performance.now();
      const ran = await this.#ask({ provider, model, purpose, transcriptText });
      if (this.#closing.signal.aborted) return undefined;
      const durationMs = Math.round(performance.now() - startedAt);
      const { text, ...took } = ran;
      await this.#options.journal.append({
        stream: threadId,
        author: "system",
        events: [{ type: "background.ran", v: 1, purpose, provider, model, durationMs, ...took }],
      });
      if (text !== undefined) return text;
    }
    return undefined;
  }

  async #ask({ provider: id, model, purpose, transcriptText }: Question): Promise<Ran> {
    const { providers, env, timeoutMs = TIMEOUT_MS } = this.#options;
    using limit = shortLimit(this.#closing.signal, timeoutMs);
    try {
      // Retried here once, and not by the stream as well.
      const own = providers.find((config) => config.id === id);
      const once = { ...own, id, maxAttempts: 1, requestAttempts: 1 };
      const provider = resolveProvider([...providers.filter((config) => config.id !== id), once], id, env);
      const maxOutputTokens = MAX_OUTPUT_TOKENS[purpose];
      const request = shortRequest({
        model,
        instructions: INSTRUCTIONS[purpose],
        data: transcriptText,
        maxOutputTokens,
      });
      for await (const event of streamModel(provider, request, { signal: limit.signal }))
        if (event.type === "completed") return answerOf(event);
      throw new HeddleError("provider.cut", "the answer has no end");
    } catch (error) {
      return { outcome: "failed", failureCode: toHeddleError(error).code, usage: NO_USAGE, text: undefined };
    }
  }
}

interface Question {
  readonly provider: string;
  readonly model: string;
  readonly purpose: Purpose;
  readonly transcriptText: string;
}

type Ran = Pick<EventOf<"background.ran">, "outcome" | "failureCode" | "usage" | "costUsd"> & {
  readonly text: string | undefined;
};

function answerOf({ output, usage, costUsd }: Extract<ModelEvent, { type: "completed" }>): Ran {
  const took = { usage, ...(costUsd === undefined ? {} : { costUsd }) };
  try {
    return { outcome: "ok", ...took, text: shortAnswer(output) };
  } catch (error) {
    return { outcome: "failed", failureCode: toHeddleError(error).code, ...took, text: undefined };
  }
}

const INSTRUCTIONS: Readonly<Record<Purpose, string>> = {
  title:
    "You give conversations a title: what it is about, in at most six words, in the language of the conversation, without quotes and without a full stop. Answer with the title alone.",
  summary:
    "You sum up conversations between a person and a coding agent: what was wanted, what was done, what is open. At most five sentences, in the language of the conversation.",
};

function wantsTitle(row: ThreadRow): boolean {
  const isNamed = row.name !== undefined || row.title !== undefined;
  return !isNamed && !row.isEphemeral && row.origin.startsWith(CHAT_ORIGIN);
}

function choose(wanted: string | undefined, { provider, model }: TurnSettings): { provider: string; model: string } {
  if (wanted === undefined) return { provider, model };
  const [, other, name] = /^([a-z][a-z0-9_-]*):(.+)$/i.exec(wanted) ?? [];
  return other === undefined || name === undefined ? { provider, model: wanted } : { provider: other, model: name };
}

/** The beginning of the conversation, up to a length; the rest is not read. */
async function transcript(journal: Journal, threadId: string, maxChars: number): Promise<string> {
  let joined = "";
  for (const { stream, upTo = Infinity } of await lineage(journal, threadId)) {
    for (let after = 0; after < upTo && joined.length < 2 * maxChars;) {
      const page = await journal.read({ stream, after, limit: TRANSCRIPT_PAGE, types: ["item.completed"] });
      for (const { version, body } of page) {
        const text = version <= upTo && body.type === "item.completed" ? textOf(body.item) : undefined;
        if (text !== undefined) joined += `${joined === "" ? "" : "\n\n"}${text.slice(0, maxChars)}`;
      }
      after = page.length < TRANSCRIPT_PAGE ? upTo : (page.at(-1)?.version ?? upTo);
    }
  }
  return joined.slice(0, 2 * maxChars);
}

const TRANSCRIPT_PAGE = 100;

function textOf(item: Item): string | undefined {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return `Agent: ${item.text}`;
  if (item.type !== "userMessage") return undefined;
  return `Person: ${item.content.map((part) => (part.type === "text" ? part.text : "[image]")).join("\n")}`;
}

/** Longer text is not a title. */
const MAX_ANSWER_CHARS = 1000;

export function cleanTitle(answer: string): string | undefined {
  const line = answer.split("\n").find((text) => text.trim() !== "") ?? "";
  const bare = visibleLine(line.slice(0, MAX_ANSWER_CHARS).replaceAll(/\s+/gu, " "))
    .replace(/^[\s#*>"'`“”‘’«»_-]+|[\s*"'`“”‘’«»_.]+$/gu, "")
    .replaceAll(/["“”«»]/gu, "")
    .trim();
  const letters = Array.from(bare);
  const short =
    letters.length <= MAX_TITLE_CHARS
      ? bare
      : `${letters
          .slice(0, MAX_TITLE_CHARS - 1)
          .join("")
          .trimEnd()}…`;
  return short === "" ? undefined : short;
}
