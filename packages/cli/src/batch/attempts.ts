/**
 * A run as a chain of attempts: one turn, and after a failure that may pass, another. Two readers follow each turn, each with
 * its own cursor: the printer, which a slow reader may hold up, and `onEvent`, which may not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Heddle, StartTurn, TerminalEvent, TurnHandle } from "@heddle/agent";
import { OWNER, toHeddleError, type RunResult, type StoredEvent, type TurnLimits } from "@heddle/protocol";
import { followTurn } from "../follow.ts";
import type { Printer } from "../print/output.ts";
import type { Stop } from "../stop.ts";
import { statusOf } from "./result.ts";
import { limitsLeft, nextAttempt, resumeInput, type NextAttempt } from "./retry.ts";
import { sumUp, type RunSummary } from "./run-summary.ts";

export type Attempt = RunResult["attempts"][number];
export type Retry = Exclude<NextAttempt, { kind: "none" }>;

export interface AttemptsOptions {
  readonly start: StartTurn;
  readonly retries: number;
  readonly limits: TurnLimits | undefined;
  readonly printer: Printer;
  readonly stop: Stop;
  onStarted(handle: TurnHandle, mode: Attempt["mode"]): void;
  onEvent(event: StoredEvent): void;
  onActivity(): void;
  onEnded(attempt: Attempt): void;
  /** An attempt failed and another follows; the failed one's end is not printed, for it is not the run's. */
  onRetry(retry: Retry, attempt: number): Promise<void>;
}

export interface LastAttempt {
  readonly handle: TurnHandle;
  readonly terminal: TerminalEvent;
  readonly message: string | undefined;
}

export async function runAttempts(heddle: Heddle, options: AttemptsOptions): Promise<LastAttempt> {
  const { stop, limits } = options;
  const isOlderThread = typeof options.start.thread === "string" || "fork" in options.start.thread;
  /** Of the whole run, as far as it has been printed. */
  const printed = sumUp();
  let start = options.start;
  let mode: Attempt["mode"] = "first";
  for (let attempt = 1; ; attempt += 1) {
    const decide = (view: RunSummary): NextAttempt => {
      const isSpent = limits !== undefined && limitsLeft(limits, view) === undefined;
      if (isSpent || stop.signal.aborted) return { kind: "none" };
      return nextAttempt({ ...view, attempt, retries: options.retries, isOlderThread });
    };
    const handle = await heddle.as(OWNER).startTurn(start);
    options.onStarted(handle, mode);
    const after: { next: NextAttempt } = { next: { kind: "none" } };
    const printer: Printer = {
      ...options.printer,
      async event(event) {
        printed.add(event.body);
        if (event.body.type === "turn.completed") after.next = decide(printed.now);
        if (after.next.kind === "none") await options.printer.event(event);
      },
    };
    const { terminal, message } = await followBoth(heddle, handle, { ...options, printer });
    options.onEnded(attemptOf(attempt, mode, handle, terminal));
    const { next } = after;
    if (next.kind === "none") return { handle, terminal, message };
    await options.onRetry(next, attempt);
    await pause(next.delayMs, stop.signal);
    mode = next.kind;
    start = following(options, next, handle, printed.now);
  }
}

async function followBoth(
  heddle: Heddle,
  handle: TurnHandle,
  options: AttemptsOptions,
): Promise<Omit<LastAttempt, "handle">> {
  const { threadId, turnId, admittedVersion } = handle;
  using _activity = heddle.onActivity(threadId, () => options.onActivity());
  const tailing = new AbortController();
  async function watch(): Promise<void> {
    const from = { stream: threadId, after: admittedVersion - 1, signal: tailing.signal };
    for await (const event of heddle.journal.tail(from)) {
      options.onActivity();
      options.onEvent(event);
      if (event.body.type === "turn.completed" && event.body.turnId === turnId) return;
    }
  }
  const watching = Promise.allSettled([watch()]);
  try {
    return await followTurn(heddle, handle, options);
  } catch (error) {
    tailing.abort();
    throw error;
  } finally {
    // A journal that cannot be read has failed the other reader too.
    await watching;
  }
}

function attemptOf(attempt: number, mode: Attempt["mode"], handle: TurnHandle, { body }: TerminalEvent): Attempt {
  const reason = body.failure?.code ?? (body.status === "completed" ? undefined : "turn.interrupted");
  const ids = { thread_id: handle.threadId, turn_id: handle.turnId };
  return { attempt, mode, ...ids, status: statusOf(reason), ...(reason === undefined ? {} : { reason }) };
}

function following(options: AttemptsOptions, next: Retry, handle: TurnHandle, spent: RunSummary): StartTurn {
  const { start } = options;
  const left = options.limits === undefined ? undefined : limitsLeft(options.limits, spent);
  const settings = left === undefined ? start.settings : { ...start.settings, limits: left };
  if (next.kind === "restart") return { ...start, settings };
  const task = start.task === undefined ? {} : { task: start.task };
  return { thread: handle.threadId, input: resumeInput(next.reason), settings, ...task };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    throw toHeddleError(signal.reason, "turn.interrupted");
  }
}
