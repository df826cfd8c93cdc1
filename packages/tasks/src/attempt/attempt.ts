/**
 * One attempt at a task, from wherever earlier attempts left it:
 *
 *   prepare ─▶ prompt (stored, then sent) ─▶ turn ─▶ claim ─▶ checks ─▶ verified
 *                 ▲                            │                 │ rejected, within nudges and budget
 *                 ├──── hop, while the spec has one left         │
 *                 └──────────────────────────────────────────────┘
 *
 * Its end is an event: verified, claimed (no checks), paused, failed, retried. All state is in events, so that after a crash
 * the next worker continues at the same step.
 */
import {
  afterEvents,
  defined,
  isHeddleError,
  isNudge,
  reasonOf,
  toHeddleError,
  type EventOf,
  type Failure,
  type TaskEventBody,
  type TaskRecord,
  type TurnSettings,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { findSent, StartWatch, type Slots } from "@heddle/agent";
import { describe, limitsOf, unnamedLimits, usedUp, warnings } from "./budget.ts";
import { claimIn, type AgentClaim } from "./claim.ts";
import type { Feed } from "../queue/feed.ts";
import type { HarnessOptions } from "../queue/harness.ts";
import { judgeEnd, MAX_REASON, outOfBudget, outOfNudges } from "./endings.ts";
import { followTurn, type Followed, type FollowedTurn } from "./follow-turn.ts";
import { isTaken, type Hold } from "./hold.ts";
import { dropEarlier } from "../judge/freeze-claim.ts";
import { noteLeft } from "../judge/left.ts";
import { undeliverable } from "../judge/protected.ts";
import { envelopeNow, nextHop } from "./planned-hops.ts";
import { readPast, type Step } from "./past.ts";
import { clearThread, endProcesses, prepare, type Prepared } from "./prepare.ts";
import { promptText, reviewText } from "./prompts.ts";
import { backoff, settleFailure } from "./retry.ts";
import { insteadOfWork } from "../contest/follow-contest.ts";
import { refuseImpossibleHops } from "../spec/check-hops.ts";
import { judgeWork, watchTurn } from "./work.ts";

type Options = Required<Pick<HarnessOptions, "heddle" | "settingsFor" | "home" | "now" | "log">>;

/** What all attempts of a harness share. */
export interface HarnessContext extends Options {
  readonly feed: Feed;
  /** Limits how many prepare at once: a thousand tasks that begin together would each read a folder. */
  readonly preparing: Slots;
  /** Closing the harness waits for attempts to end. */
  readonly closing: AbortSignal;
  readonly slowStartMs: number | undefined;
}

/** Resolves when the task is no longer this worker's. Throws only when the store cannot record the end. */
export async function runAttempt(context: HarnessContext, hold: Hold): Promise<void> {
  const signal = AbortSignal.any([context.closing, hold.lost]);
  const log = (line: string): void => context.log(`${hold.task.id}: ${line}`);
  using watch = new StartWatch("taken", { log, slowMs: context.slowStartMs });
  try {
    const instead = await insteadOfWork(context.heddle.journal, hold.task);
    if (instead.length > 0) return void (await hold.append(...instead));
    const { prepared, next } = await prepareAttempt(context, hold, { signal, watch });
    const round: Round = { context, hold, prepared, signal, watch };
    if (hold.task.spec.agents !== undefined) return await (await import("../contest/run-contest.ts")).runContest(round);
    let step: Step | undefined = next;
    while (step !== undefined) step = await carryOut(round, step);
  } catch (error) {
    if (hold.lost.aborted) return;
    await hold.append(ending(context, hold, error));
  }
}

async function prepareAttempt(
  context: HarnessContext,
  hold: Hold,
  { signal, watch }: { readonly signal: AbortSignal; readonly watch: StartWatch },
): Promise<{ readonly prepared: Prepared; readonly next: Step }> {
  watch.pause();
  using _slot = await context.preparing.take(signal);
  signal.throwIfAborted();
  watch.goOn("read the task");
  const past = await readPast(context.heddle.journal, hold.task);
  await refuseImpossibleHops(hold.task.spec, context.home);
  return { prepared: await prepare(context, hold, { ...past, signal, watch }), next: past.next };
}

export interface Round {
  readonly context: HarnessContext;
  readonly hold: Hold;
  readonly prepared: Prepared;
  readonly signal: AbortSignal;
  /** Until the first request of the attempt. */
  readonly watch: StartWatch;
}

async function carryOut(round: Round, step: Step): Promise<Step | undefined> {
  round.signal.throwIfAborted();
  switch (step.kind) {
    case "prompt":
      round.watch.step("write the prompt");
      return prompt(round, step.why);
    case "turn":
      return turn(round);
    case "hop":
      return (await import("./take-hop.ts")).takeHop(round);
    case "check":
      // The attempt resumes after its turn.
      round.watch[Symbol.dispose]();
      return await checkAndForget(round, step.claim);
  }
}

/** Closing the harness waits for it. */
const FORGET_MS = 5_000;

/** After the verdict the work of earlier rounds is not needed; what cannot be removed now is removed with the next. */
export async function checkAndForget(
  round: Round,
  claim: Claimed,
  beforeVerified?: () => Promise<readonly TaskEventBody[]>,
): Promise<Step | undefined> {
  const { context, hold } = round;
  const next = await check(round, claim, beforeVerified);
  const options = { home: context.home, signal: AbortSignal.timeout(FORGET_MS) };
  await dropEarlier(options, hold.task).catch((error: unknown) => context.log(`${hold.task.id}: ${reasonOf(error)}`));
  return next;
}

const MAX_REVIEW = 2000;

function ending({ closing, now }: HarnessContext, { task }: Hold, error: unknown): TaskEventBody {
  const { id, attempt, faults = 0 } = task;
  if (closing.aborted) return { type: "task.retried", v: 1, attempt, reason: "its worker was stopped" };
  const { code, message, details } = toHeddleError(error);
  const failure: Failure = { code, message };
  // The home's day is used up, not the task's budget: it goes on when the next one begins.
  if (code === "limit.reached" && details["limit"] === "day")
    return { type: "task.retried", v: 1, attempt, failure, notBefore: Number(details["until"]), reason: message };
  if (!code.startsWith("store.") && code !== "turn.active") return settleFailure(task, failure, now());
  // The store or the thread failed, not the task: it costs the task nothing, and no retry of its spec.
  if (faults < MAX_FAULTS) {
    const notBefore = now() + backoff(FAULT_AGAIN_MS, faults);
    return { type: "task.retried", v: 1, attempt, failure, notBefore, reason: `${code}: ${message}` };
  }
  const why = `${message} (tried ${faults + 1} times); when that is fixed, run: heddle task resume ${id}`;
  return { type: "task.paused", v: 1, cause: "fault", message: why };
}

const FAULT_AGAIN_MS = 5000;
const MAX_FAULTS = 7;

async function prompt(round: Round, wanted: EventOf<"task.prompted">["why"]): Promise<Step | undefined> {
  const { hold, prepared, context } = round;
  const { task } = hold;
  const reached = usedUp(task);
  if (reached !== undefined) {
    await noteEnd(round);
    await hold.append(outOfBudget(hold, describe(reached)));
    return undefined;
  }
  if (isNudge(wanted) && task.spent.nudges >= task.spec.maxNudges) {
    await noteEnd(round);
    await hold.append(outOfNudges(context.now(), hold));
    return undefined;
  }
  const isFirst = !(await isKnown(context, prepared.threadId, task));
  const why = isFirst ? "first" : wanted === "first" ? "restarted" : wanted;
  const next = task.round + 1;
  await hold.append({
    type: "task.prompted",
    v: 1,
    attempt: task.attempt,
    round: next,
    clientId: promptId(task.id, next),
    why,
    text: promptText(hold.task, why),
  });
  failpoint("task.after-prompt");
  return { kind: "turn" };
}

/** Its last prompt was sent to this thread: the agent knows the task. */
async function isKnown({ heddle }: HarnessContext, stream: string, { id, round }: TaskRecord): Promise<boolean> {
  const sent = await heddle.journal.marks.versions({ stream, kinds: ["sent"], name: promptId(id, round) });
  return sent.length > 0;
}

function promptId(taskId: string, round: number): string {
  return `${taskId}.${round}`;
}

async function turn(round: Round): Promise<Step | undefined> {
  const { context, hold, prepared } = round;
  const begun = await beginTurn(round);
  failpoint("task.after-start");
  const { closing, feed, heddle } = context;
  await using _watch = watchTurn({ context, hold, folder: prepared.folder, signal: round.signal }, begun);
  const followed = await followTurn({ heddle, feed, hold, closing }, begun);
  failpoint("task.after-turn");
  const claim = claimIn(followed.events, begun.turnId, hold.task.spec.steps.length);
  const ended = turnEnded(hold, followed);
  if (followed.stoppedFor === "lost") {
    // In this order: a reader that sees the end of the turn finds what it left.
    await noteEnd(round);
    await hold.account(ended);
    return undefined;
  }
  // Awaited here: what it throws must find its reader while the watch is disposed of.
  return await settleTurn(round, { followed, claim, ended });
}

export async function noteEnd({ context, hold, prepared }: Round): Promise<void> {
  const { home, heddle, log } = context;
  const quiet = (): Promise<boolean> => heddle.endCommands(prepared.threadId);
  if (isTaken(hold)) await quiet(); // The files kept of the task are the other worker's now.
  else await noteLeft({ home, task: hold.task, quiet, log, ...prepared });
}

/** Another client may begin a turn in the thread first; more often than this is a fault. */
const MAX_BEGINNINGS = 10;

/** Sends the stored prompt, or finds the turn that it became before a crash. */
async function beginTurn({ context, hold, prepared, signal, watch }: Round): Promise<FollowedTurn> {
  const { journal } = context.heddle;
  const { threadId, folder } = prepared;
  const { openPrompt, spec } = hold.task;
  if (openPrompt === undefined) throw new TypeError(`${hold.task.id} has no open prompt`);
  const { clientId, text } = openPrompt;
  const input = [{ type: "text", text }] as const;
  watch.step("look for a turn of this prompt");
  const sent = await findSent(journal, threadId, { clientId, input });
  const row = sent === undefined ? undefined : await journal.threads.turn(sent.turnId);
  if (row !== undefined) return { threadId, turnId: row.id, version: row.admittedVersion };
  const asked = await context.settingsFor({ ...spec, ...envelopeNow(hold.task) });
  let settings: TurnSettings = { ...asked, limits: limitsOf(hold.task), isForTask: true };
  for (let tries = 1; ; tries += 1) {
    watch.step("wait for the thread");
    await clearThread(context, hold, prepared, signal);
    try {
      const where = { thread: threadId, workspace: folder };
      const started = await context.heddle.as("system").startTurn({ ...where, input, settings, clientId, watch });
      const { turnId, admittedVersion: version, done } = started;
      return { threadId, turnId, version, done };
    } catch (error) {
      if (!isHeddleError(error) || tries === MAX_BEGINNINGS) throw error;
      const limits = unnamedLimits(error, hold.task, settings.limits ?? {});
      if (limits === undefined && error.code !== "turn.active") throw error;
      if (limits !== undefined) settings = { ...settings, limits };
    }
  }
}

function turnEnded({ task }: Hold, { terminal, waitedMs }: Followed): EventOf<"task.turn-ended"> {
  const { turnId, status, failure, usage, costUsd, durationMs } = terminal.body;
  return {
    type: "task.turn-ended",
    v: 1,
    attempt: task.attempt,
    round: task.openPrompt?.round ?? task.round,
    turnId,
    status,
    usage,
    durationMs: Math.max(0, durationMs - waitedMs),
    ...defined({ failure, costUsd }),
  };
}

interface EndedTurn {
  readonly followed: Followed;
  readonly claim: AgentClaim;
  readonly ended: EventOf<"task.turn-ended">;
}

/** The claim is stored together with the end of the turn, so that a crash finds both or neither. */
async function settleTurn(round: Round, { followed, claim, ended }: EndedTurn): Promise<Step | undefined> {
  const { context, hold } = round;
  const { attempt, spec, stepsDone } = hold.task;
  const isNew = claim.stepsDone.some((step) => !stepsDone.includes(step));
  const progressed: TaskEventBody[] = isNew
    ? [{ type: "task.progressed", v: 1, attempt, stepsDone: [...claim.stepsDone] }]
    : [];
  const { by, summary } = claim;
  const store = async (...more: readonly TaskEventBody[]): Promise<void> => {
    try {
      await hold.append(...warned(hold.task, [ended, ...progressed]), ...more);
    } catch (error) {
      if (hold.lost.aborted) {
        await noteEnd(round);
        await hold.account(ended);
      }
      throw error;
    }
  };
  if (followed.stoppedFor === "closing") {
    await store({ type: "task.retried", v: 1, attempt, reason: "its worker was stopped" });
    return undefined;
  }
  const verdict = judgeEnd(hold, followed);
  if (verdict.kind !== "completed") {
    if (verdict.kind === "again") {
      await store();
      return { kind: "prompt", why: verdict.why };
    }
    await noteEnd(round);
    await store(verdict.event(context.now()));
    return undefined;
  }
  if (claim.kind === "blocked") {
    await noteEnd(round);
    await store({ type: "task.paused", v: 1, cause: "question", message: summary });
    return undefined;
  }
  const due = nextHop(hold.task);
  if (claim.kind === "progress" && (spec.checks.length === 0 || due !== undefined)) {
    await store();
    return { kind: "prompt", why: "continue" };
  }
  if (due !== undefined) {
    const { index, to } = due;
    await store({ type: "task.hop-due", v: 1, attempt, index, to, summary });
    failpoint("task.after-hop-due");
    return { kind: "hop" };
  }
  if (spec.checks.length === 0) await noteEnd(round);
  await store({ type: "task.claimed", v: 1, attempt, by, summary });
  failpoint("task.after-claim");
  return spec.checks.length === 0 ? undefined : { kind: "check", claim: { by, summary } };
}

function warned(task: TaskRecord, events: readonly TaskEventBody[]): readonly TaskEventBody[] {
  return [...events, ...warnings(afterEvents(task, task.id, events, task.updatedAt))];
}

type Claimed = Pick<EventOf<"task.claimed">, "by" | "summary">;

/** The checks decide. Results and verdict are stored together. */
async function check(
  { context, hold, prepared, signal }: Round,
  claim: Claimed,
  beforeVerified: () => Promise<readonly TaskEventBody[]> = async () => [],
): Promise<Step | undefined> {
  const { attempt, round, spec } = hold.task;
  // Taken over from a worker that died during the checks: the claim is this attempt's now.
  if (hold.task.state !== "claimed") await hold.append({ type: "task.claimed", v: 1, attempt, ...claim });
  if (spec.checks.length === 0) return undefined;
  const { folder, baseline } = prepared;
  const found = await judgeWork({ context, hold, folder, signal }, baseline, () =>
    endProcesses(context, hold, prepared, signal),
  );
  signal.throwIfAborted();
  failpoint("task.before-verdict");
  const checked: TaskEventBody = {
    type: "task.checked",
    v: 1,
    attempt,
    round,
    results: [...found.results],
    violations: [...found.violations],
    passed: found.passed,
    durationMs: found.durationMs,
    ...defined({ opinion: found.opinion, work: found.work, review: found.review }),
  };
  if (found.passed) {
    const merged = found.merged === undefined ? [] : [{ type: "task.merged", v: 1, attempt, ...found.merged } as const];
    await hold.append(checked, ...merged, ...(await beforeVerified()), { type: "task.verified", v: 1, attempt });
    failpoint("task.after-verdict");
    return undefined;
  }
  if (found.review !== undefined) {
    const message = reviewText(hold.task.id, found.review).slice(0, MAX_REVIEW);
    await hold.append(...warned(hold.task, [checked]), { type: "task.paused", v: 1, cause: "review", message });
    failpoint("task.after-verdict");
    return undefined;
  }
  const names = [
    ...found.results.filter(({ outcome }) => outcome !== "passed").map(({ name }) => name),
    ...found.violations.map(({ message }) => message.slice(0, MAX_REASON)),
    ...(found.opinion?.accepts === false ? ["second opinion"] : []),
    ...undeliverable(spec),
  ];
  await hold.append(...warned(hold.task, [checked]), { type: "task.rejected", v: 1, attempt, failing: names });
  failpoint("task.after-verdict");
  return { kind: "prompt", why: "rejected" };
}
