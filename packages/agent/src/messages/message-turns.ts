/**
 * Turns that messages start, in threads whose owner lets them: one after the other, while nothing else runs or waits there.
 * What starts a turn is of one kind, so that it has one bound, and holds at most one question, which its last message answers.
 *
 *   message ─▶ idle, and its owner lets it ─▶ turn ─▶ question answered by its end ─▶ the next message
 *                 └─ otherwise it is kept, and shown with the next turn of the thread
 */
import type { Journal, TurnRow } from "@heddle/journal";
import { isHeddleError, reasonOf, type StoredEvent, type TurnSettings } from "@heddle/protocol";
import type { Heddle, TurnHandle } from "../heddle.ts";
import { eventAt } from "../threads/history.ts";
import { awaitTerminal } from "../turns/terminal.ts";
import { isUsersCommand, waitingMessage, type Received } from "./bound.ts";
import { settleByEnd } from "./by-end.ts";
import { MAX_WAITING } from "./limits.ts";
import { wakesOf } from "./rules.ts";
import { expire } from "./settle.ts";

export interface MessageTurnsOptions {
  readonly heddle: Pick<Heddle, "journal" | "as" | "lastSettings" | "runningCommands" | "messageRules">;
  readonly onStart?: ((handle: TurnHandle) => void) | undefined;
  readonly log: (line: string) => void;
}

/** Of one turn. */
const MAX_AT_ONCE = 16;
/** Looked at when a server opens; others are looked at when something happens to them. */
const MAX_THREADS = 1_000;

export class MessageTurns implements AsyncDisposable {
  readonly #options: MessageTurnsOptions;
  readonly #closing = new AbortController();
  readonly #drains = new Map<string, Promise<void>>();
  #following: Promise<void> = Promise.resolve();

  constructor(options: MessageTurnsOptions) {
    this.#options = options;
  }

  /** Begins what waits in a thread, where it may. */
  look(threadId: string): void {
    if (this.#closing.signal.aborted) return;
    // A running drain may have looked before this message came.
    const before = this.#drains.get(threadId) ?? Promise.resolve();
    const mine = before
      .then(() => this.#beginAll(threadId))
      .catch((error: unknown) => {
        if (!this.#closing.signal.aborted)
          this.#options.log(`messages for ${threadId} stay queued: ${reasonOf(error)}`);
      })
      .finally(() => {
        if (this.#drains.get(threadId) === mine) this.#drains.delete(threadId);
      });
    this.#drains.set(threadId, mine);
  }

  /** For a server: looks at what waits now, and at every thread that gets a message or ends a turn. */
  follow(): void {
    this.#following = this.#follow().catch((error: unknown) => {
      if (!this.#closing.signal.aborted) this.#options.log(`cannot follow messages any more: ${reasonOf(error)}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#following;
    await Promise.allSettled(this.#drains.values());
  }

  async #follow(): Promise<void> {
    const { journal } = this.#options.heddle;
    const { signal } = this.#closing;
    const after = await journal.position();
    for (const threadId of await journal.messages.waitingThreads({ limit: MAX_THREADS })) this.look(threadId);
    for await (const { stream, body } of journal.tail({ after, signal })) {
      if (body.type === "message.received" && body.wakes) this.look(stream);
      else if (body.type === "turn.completed" && (await journal.messages.countWaiting(stream)) > 0) this.look(stream);
    }
  }

  async #beginAll(threadId: string): Promise<void> {
    const { journal } = this.#options.heddle;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const row = await journal.threads.get(threadId);
      if (row === undefined || row.isArchived || !wakesOf(row, this.#options.heddle.messageRules)) return;
      const batch = await nextBatch(journal, threadId);
      if (batch.length === 0) return;
      const last = await journal.threads.lastTurn(threadId);
      if (last?.status === "open") await awaitTerminal(journal, threadId, last.id, last.admittedVersion, signal);
      else if (!(await this.#begin(threadId, batch, last))) return;
    }
  }

  /** False: they are kept. */
  async #begin(threadId: string, batch: readonly Received[], last: TurnRow | undefined): Promise<boolean> {
    const { heddle, onStart } = this.#options;
    const { journal } = heddle;
    const ids = batch.map(({ body }) => body.messageId);
    const settings = await wakeSettings(heddle, threadId);
    // Commands that still run would end with the sandbox they run in, and a turn that failed once would fail again.
    const isBusy = heddle.runningCommands(threadId).length > 0 || (await journal.threads.queued(threadId)).length > 0;
    if (settings === undefined || isBusy || (await hasTried(journal, last, ids))) return false;
    let handle: TurnHandle;
    try {
      const start = { thread: threadId, input: [], task: "message", messages: ids, settings } as const;
      handle = await heddle.as("system").startTurn(start);
    } catch (error) {
      // Somebody else has begun a turn, or told an agent of them.
      if (isHeddleError(error) && (error.code === "turn.active" || error.code === "message.not-found")) return true;
      throw error;
    }
    onStart?.(handle);
    await handle.done;
    await settleByEnd(journal, handle.turnId);
    return true;
  }
}

/** Of one kind, in the order in which they came, up to the first question. */
async function nextBatch(journal: Journal, threadId: string): Promise<readonly Received[]> {
  const batch: Received[] = [];
  for (const row of await journal.messages.waiting(threadId, { limit: MAX_WAITING })) {
    if ((await expire(journal, row)) !== undefined) continue;
    const message = await read(journal, threadId, row.id);
    if (message === undefined || !message.body.wakes) continue;
    const [first] = batch;
    if (first !== undefined && kindOf(first) !== kindOf(message)) break;
    batch.push(message);
    if (message.body.kind === "ask" || batch.length === MAX_AT_ONCE) break;
  }
  return batch;
}

async function read(journal: Journal, threadId: string, id: string): Promise<Received | undefined> {
  try {
    return await waitingMessage(journal, threadId, id);
  } catch (error) {
    if (isHeddleError(error) && error.code === "message.not-found") return undefined;
    throw error;
  }
}

function kindOf(message: Received): string {
  if (isUsersCommand(message)) return "command";
  return message.body.role === "command" ? `command of ${message.body.from?.threadId ?? ""}` : "material";
}

async function hasTried(journal: Journal, last: TurnRow | undefined, ids: readonly string[]): Promise<boolean> {
  const admitted: StoredEvent | undefined = last && (await eventAt(journal, last.threadId, last.admittedVersion));
  if (admitted?.body.type !== "turn.admitted") return false;
  return admitted.body.messages?.some((id) => ids.includes(id)) === true;
}

/** As in its last turn, without what belonged to that one alone. A thread that has had none, or works on a task, is not woken. */
async function wakeSettings(
  heddle: MessageTurnsOptions["heddle"],
  threadId: string,
): Promise<TurnSettings | undefined> {
  const last = await heddle.lastSettings(threadId);
  if (last === undefined || last.isForTask === true) return undefined;
  const {
    outputSchema: _schema,
    isAnswerUnchecked: _unchecked,
    hasClientTools: _tools,
    asksUser: _asks,
    ...kept
  } = last;
  return kept;
}
