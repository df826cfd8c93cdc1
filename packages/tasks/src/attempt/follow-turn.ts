/**
 * Follows the turn of a prompt to its stored end, in whichever process it runs: records waits for the user or a provider,
 * and stops it when the time is used up, the task was lost or the harness closes.
 */
import {
  HeddleError,
  reasonOf,
  type ApprovalQuestion,
  type EventOf,
  type StoredEvent,
  type TaskEventBody,
} from "@heddle/protocol";
import type { Heddle, InterruptReason, TerminalEvent } from "@heddle/agent";
import { timeLeftMs } from "./budget.ts";
import type { Feed } from "../queue/feed.ts";
import { isOutdated, isTaken, type Hold } from "./hold.ts";

export interface FollowedTurn {
  readonly threadId: string;
  readonly turnId: string;
  readonly version: number;
  /** Rejects when its end could not be stored; absent: another process runs it. */
  readonly done?: Promise<unknown>;
}

export interface Followed {
  readonly terminal: TerminalEvent;
  readonly events: readonly StoredEvent[];
  /** While it waited for an answer of the user. */
  readonly waitedMs: number;
  /** Why the harness stopped it. */
  readonly stoppedFor: "time" | "lost" | "closing" | undefined;
}

export interface FollowContext {
  readonly heddle: Pick<Heddle, "as" | "journal" | "releaseTurn">;
  readonly feed: Feed;
  readonly hold: Hold;
  readonly closing: AbortSignal;
}

/** The longest that Node's timers take. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Longer than a turn takes to stop; one of another process may not stop at all. */
const STOP_MS = 10_000;
/** Closing has little time; a turn that has not ended by then is closed at the next start. */
const CLOSING_MS = 3500;
/** A shorter delay of a provider is not worth recording. */
const WORTH_SAYING_MS = 1000;

export async function followTurn(context: FollowContext, turn: FollowedTurn): Promise<Followed> {
  const { feed, hold } = context;
  const failed = new AbortController();
  using stopper = createStopper(context, turn, failed);
  const waits = createWaits(hold, stopper);
  const events: StoredEvent[] = [];
  turn.done?.catch((error: unknown) => failed.abort(error));
  for await (const event of feed.follow(turn.threadId, { after: turn.version - 1, signal: failed.signal })) {
    const { body } = event;
    if (!("turnId" in body) || body.turnId !== turn.turnId) continue;
    events.push(event);
    if (body.type === "turn.completed") {
      return { terminal: { ...event, body }, events, waitedMs: waits.totalMs(event.at), stoppedFor: stopper.reason() };
    }
    await waits.see(event);
  }
  failed.signal.throwIfAborted();
  throw new HeddleError("store.failed", `the journal closed before turn ${turn.turnId} ended`);
}

type Stopper = ReturnType<typeof createStopper>;

function createStopper({ heddle, hold, closing }: FollowContext, { turnId }: FollowedTurn, failed: AbortController) {
  let reason: Followed["stoppedFor"];
  let patience: NodeJS.Timeout | undefined;
  let leftMs = timeLeftMs(hold.task);
  let since = 0;
  /** The user is asked. */
  let isHeld = false;
  let timer: NodeJS.Timeout | undefined;

  function stop(why: NonNullable<Followed["stoppedFor"]>, interruption: InterruptReason): void {
    if (reason !== undefined) return;
    reason = why;
    const stopMs = why === "closing" ? CLOSING_MS : STOP_MS;
    patience = setTimeout(() => {
      failed.abort(new HeddleError("turn.active", `turn ${turnId} does not stop`));
    }, stopMs);
    // A turn that another process continues belongs to the worker that has the task.
    const asked = isTaken(hold)
      ? heddle.releaseTurn(turnId, interruption)
      : heddle.as("system").interrupt(turnId, interruption);
    // It has ended by itself, or its end will report what is wrong with the store.
    asked.catch(() => undefined);
  }

  function goOn(): void {
    if (timer !== undefined) return;
    since = performance.now();
    const message = "the time of the task is used up";
    timer = setTimeout(() => stop("time", { code: "turn.timeout", message }), Math.min(leftMs, MAX_TIMER_MS));
  }

  function pause(): void {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    leftMs = Math.max(0, leftMs - (performance.now() - since));
  }

  const onLost = (): void => stop("lost", { code: "turn.interrupted", message: reasonOf(hold.lost.reason) });
  const onClosing = (): void => {
    // At a question the turn can be left as it is: the next worker continues to follow it.
    if (isHeld) failed.abort(new HeddleError("turn.parked", `turn ${turnId} waits for an answer`));
    else stop("closing", { code: "turn.interrupted", message: "the harness is closing" });
  };
  if (hold.lost.aborted) onLost();
  if (closing.aborted) onClosing();
  hold.lost.addEventListener("abort", onLost, { once: true });
  closing.addEventListener("abort", onClosing, { once: true });
  goOn();
  return {
    reason: (): Followed["stoppedFor"] => reason,
    /** Time while the user is asked does not count. */
    hold(): void {
      isHeld = true;
      pause();
    },
    goOn(): void {
      isHeld = false;
      goOn();
    },
    [Symbol.dispose](): void {
      pause();
      clearTimeout(patience);
      hold.lost.removeEventListener("abort", onLost);
      closing.removeEventListener("abort", onClosing);
    },
  };
}

function createWaits(hold: Hold, stopper: Stopper) {
  const questions = new Map<string, ApprovalQuestion>();
  let askedAt: number | undefined;
  let totalMs = 0;

  /** After the task was lost nothing is recorded; the turn is being stopped. */
  async function say(event: TaskEventBody): Promise<void> {
    try {
      await hold.append(event);
    } catch (error) {
      if (!isOutdated(error)) throw error;
    }
  }

  const isWaiting = (cause: string): boolean => hold.task.state === "waiting" && hold.task.wait?.cause === cause;

  async function asked({ approvalId, question }: EventOf<"approval.requested">, at: number): Promise<void> {
    questions.set(approvalId, question);
    askedAt ??= at;
    stopper.hold();
    await say({ type: "task.waited", v: 1, cause: "approval", message: describeAll([...questions.values()]) });
  }

  async function answered({ approvalId }: EventOf<"approval.resolved">, at: number): Promise<void> {
    if (!questions.delete(approvalId)) return;
    if (questions.size > 0) return;
    totalMs += at - (askedAt ?? at);
    askedAt = undefined;
    stopper.goOn();
    if (isWaiting("approval")) await say({ type: "task.woken", v: 1 });
  }

  async function delayed({ cause, delayMs }: EventOf<"model.retried">, at: number): Promise<void> {
    if (delayMs < WORTH_SAYING_MS || questions.size > 0) return;
    const next = new Date(at + delayMs).toISOString();
    const message = `${cause.message}; asked again at ${next}`;
    await say({ type: "task.waited", v: 1, cause: "provider", message, until: at + delayMs });
  }

  return {
    async see({ body, at }: StoredEvent): Promise<void> {
      if (body.type === "approval.requested" && body.isUnattended !== true) await asked(body, at);
      else if (body.type === "approval.resolved") await answered(body, at);
      else if (body.type === "model.retried") await delayed(body, at);
      else if (GOES_ON.has(body.type) && isWaiting("provider")) await say({ type: "task.woken", v: 1 });
    },
    totalMs: (now: number): number => totalMs + (askedAt === undefined ? 0 : now - askedAt),
  };
}

/** The provider has answered. */
const GOES_ON: ReadonlySet<string> = new Set<StoredEvent["body"]["type"]>(["model.responded", "item.started"]);

const MAX_SHOWN = 200;

function describeAll(questions: readonly ApprovalQuestion[]): string {
  const [first] = questions;
  const more = questions.length > 1 ? ` (+${questions.length - 1} more)` : "";
  return `waits for an answer: ${first === undefined ? "" : describe(first).slice(0, MAX_SHOWN)}${more}`;
}

function describe(question: ApprovalQuestion): string {
  switch (question.kind) {
    case "command":
      return `may it run ${question.command}`;
    case "fileChange":
      return `may it change ${question.paths.join(", ")}`;
    case "tool":
      return `may it call ${question.tool} ${JSON.stringify(question.arguments)}`;
    case "userInput":
      return question.questions.map((asked) => asked.question).join("; ");
    case "elicitation":
      return `${question.server} asks: ${question.message}`;
    case "permissions":
      return `may it have more permissions`;
  }
}
