/**
 * Run one turn, the same for every door. The turn is admitted (durable) when this starts; it ends with exactly one
 * terminal event, appended on the version that was seen last, so that no acknowledged steering can slip in unread.
 *
 *   admitted ─▶ started ─▶ runner ─▶ items closed ─▶ sandbox left ─▶ open commands' items closed ─▶ completed | failed
 *                  ▲                                                            │                     | interrupted
 *                  └──────────────────── steering came late ────────────────────┘
 *
 * A turn that waits for an answer can be let go of instead, and another process carries it on: see `parked.ts`.
 */
import {
  clockMs,
  HeddleError,
  isHeddleError,
  toHeddleError,
  type EventBody,
  type EventOf,
  type Failure,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { envelopeHash } from "@heddle/tools";
import { ask, takeBack } from "../approvals/approvals.ts";
import { workAhead } from "./ahead.ts";
import type { Beside } from "./beside.ts";
import { compareFiles, type ComparedFiles } from "./compared-files.ts";
import { enteringEvents, sinceEntered } from "./enter-envelope.ts";
import { admissionOf, toFailure, addSpent, NOTHING_SPENT } from "./outcome.ts";
import { openInbox, type TurnInbox } from "./inbox.ts";
import { metered, type Meter } from "./limits.ts";
import type { Live } from "./live.ts";
import { isParking, takeStoredQuestion } from "../approvals/carried.ts";
import { liveSandbox } from "../sandboxes/live-sandbox.ts";
import type { PendingEnds } from "../recovery/pending-ends.ts";
import { underPolicy, type Policies } from "./policy.ts";
import { createRecorder, type Recorder } from "./recorder.ts";
import type { LeasedJournal, TurnLease } from "./turn-lease.ts";
import type { BareIo, Runner, Spent, TurnOutcome, TurnRequest } from "../runners/runner.ts";
import { notice, saidOf, userMessage } from "../runners/notes.ts";
import type { ReadJournal } from "../threads/history.ts";
import { isTerminalOf, terminalKey, type TerminalEvent } from "./terminal.ts";

export interface TurnDeps {
  readonly journal: ReadJournal;
  readonly lease: TurnLease;
  /** What the turn may spend. */
  readonly meter: Meter;
  readonly live: Live;
  readonly runner: Runner;
  readonly policies: Policies;
  readonly beside: Pick<Beside, "around">;
  readonly isUnattended: boolean;
  readonly approvalTimeoutMs: number | undefined;
  /** Keeps the terminal event while the store cannot take it. */
  readonly ends: PendingEnds;
  /** Called after the runner and before the terminal event, to end what must not outlive the turn. */
  leave(turn: TurnRequest, outcome: TurnOutcome): Promise<void>;
}

export async function runTurn(deps: TurnDeps, request: TurnRequest, control: AbortController): Promise<TerminalEvent> {
  const { journal, lease } = deps;
  const { threadId, turnId, carried } = request;
  const startedAt = clockMs() - (carried === undefined ? 0 : Math.max(0, Date.now() - carried.admittedAt));
  await using inbox = openInbox(journal, {
    threadId,
    turnId,
    after: request.history.at(-1)?.version ?? 0,
    unread: request.carried?.unread,
    onInterrupt: ({ failure }) => control.abort(toInterrupt(failure)),
    onFailure: (error) => control.abort(toHeddleError(error, "store.failed")),
  });
  const onLost = (): void => control.abort(lease.lost.reason);
  lease.lost.addEventListener("abort", onLost, { once: true });
  const recorder = createRecorder(lease.leased, deps.live, { threadId, turnId, runner: deps.runner.name });
  const { meter } = deps;
  let turn: TurnRequest = { ...request, sandboxContext: liveSandbox(request.sandboxContext) };
  if (carried !== undefined) countEarlier(meter, request);
  let spent: Spent = carried?.spent ?? NOTHING_SPENT;
  for (;;) {
    const part = await carryOut(deps, turn, { inbox, recorder, meter, control, signal: control.signal });
    spent = addSpent(spent, part.outcome.spent);
    const outcome = { ...part.outcome, spent };
    const end = { ...part, outcome, startedAt, signal: control.signal };
    let tries = 0;
    const attempt = () => complete(deps, inbox, turn, { ...end, isRepeat: tries++ > 0 });
    const terminal = await deps.ends.store(turnId, attempt);
    if (terminal !== undefined) return terminal;
    const { readResumed } = await import("../threads/resumed.ts");
    turn = { ...turn, history: await readResumed(journal, threadId) };
  }
}

interface Running {
  readonly inbox: TurnInbox;
  readonly recorder: Recorder;
  readonly meter: Meter;
  readonly control: AbortController;
  readonly signal: AbortSignal;
}

interface CarriedOut {
  readonly outcome: TurnOutcome;
  /** Something could not be recorded, so items or intents may be open in the journal. */
  readonly hasLooseEnds: boolean;
  /** Its beginning is on record. */
  readonly hasBegun: boolean;
}

async function carryOut(deps: TurnDeps, turn: TurnRequest, running: Running): Promise<CarriedOut> {
  const { recorder, signal } = running;
  using files = compareFiles({ ...turn, envelope: turn.sandboxContext.envelope });
  let outcome: TurnOutcome;
  let hasBegun = false;
  try {
    signal.throwIfAborted();
    turn.watch?.step("record the beginning");
    await begin(deps, turn, running);
    hasBegun = true;
    turn.watch?.tellTo((text) => void recorder.record(notice(turn.turnId, text), "system").catch(() => undefined));
    turn.watch?.step("collect the context for the model");
    const bare = metered(turnIo(deps, turn, running), running.meter, (reached) => running.control.abort(reached));
    const io = files.watching(bare);
    outcome = await deps.beside.around(turn, io, () => runUnderPolicy(deps, turn, io, { recorder, files }));
  } catch (error) {
    outcome = { kind: "failed", failure: toFailure(error), spent: NOTHING_SPENT };
  }
  turn.watch?.[Symbol.dispose]();
  if (
    isParking(signal.reason) &&
    (await (await import("../approvals/parked.ts")).isAtQuestion(deps.journal, turn.turnId))
  ) {
    await deps.leave(turn, { kind: "interrupted", spent: outcome.spent });
    throw signal.reason;
  }
  // Whatever a runner reports, the reason of the abort decides.
  if (signal.aborted && (outcome.kind !== "completed" || isLimit(signal.reason))) {
    outcome = endByAbort(signal.reason, outcome.spent);
  }
  let hasLooseEnds = false;
  // Each is tried: a failed record must not keep processes alive.
  const ends = [
    () => takeBackLeft(deps.lease.leased, turn),
    () => recorder.closeOpenItems(),
    () => deps.leave(turn, outcome),
    () => recorder.closeFollowed(),
    // What ran in the sandbox has ended.
    () => recordCompared(files, recorder),
  ];
  for (const end of ends) {
    try {
      await end();
    } catch (error) {
      hasLooseEnds = true;
      if (outcome.kind === "completed") outcome = { kind: "failed", failure: toFailure(error), spent: outcome.spent };
    }
  }
  return { outcome, hasLooseEnds, hasBegun };
}

async function recordCompared(files: ComparedFiles, recorder: Recorder): Promise<void> {
  const compared = await files.end();
  if (compared !== undefined) await recorder.record([compared], "system");
}

async function runUnderPolicy(
  { journal, runner, policies, meter }: TurnDeps,
  turn: TurnRequest,
  io: BareIo,
  { recorder, files }: { readonly recorder: Recorder; readonly files: ComparedFiles },
): Promise<TurnOutcome> {
  const policy = policies.open(turn, {
    signal: io.signal,
    since: await sinceEntered(journal, turn),
    journal,
    outer: () => meter.outer?.ofEnvelope?.(),
    record: async (events, author) => recorder.record(await files.around(events), author),
    settleFollowed: () => recorder.settleFollowed(),
  });
  meter.ofEnvelope = () => policy.meters.of(policy.hops.current.envelope);
  let outcome: TurnOutcome;
  try {
    outcome = await runner.run(turn, underPolicy(io, { turn, runner: runner.name, policy }));
  } catch (error) {
    outcome = { kind: "failed", failure: toFailure(error), spent: NOTHING_SPENT };
  }
  try {
    await policy.end();
  } catch (error) {
    if (outcome.kind === "completed") return { kind: "failed", failure: toFailure(error), spent: outcome.spent };
  }
  return outcome;
}

/** Earlier usage counts too. */
function countEarlier(meter: Meter, { turnId, history }: TurnRequest): void {
  for (const { body } of history) {
    if (body.type !== "model.requested" && body.type !== "model.responded") continue;
    if (body.turnId !== turnId) continue;
    meter.before([body]);
    meter.after([body]);
  }
}

/** Earlier questions that no call has asked again. */
async function takeBackLeft(leased: LeasedJournal, { threadId, turnId, carried }: TurnRequest): Promise<void> {
  for (const { approvalId } of carried?.questions.values() ?? []) {
    await takeBack(leased, { threadId, turnId, approvalId, reason: "the call ended without an answer" });
  }
  carried?.questions.clear();
}

/** The answer that exceeded a limit is kept, and the turn has failed. */
function isLimit(reason: unknown): boolean {
  return isHeddleError(reason) && reason.code === "limit.reached";
}

function endByAbort(reason: unknown, spent: Spent): TurnOutcome {
  const { code } = toHeddleError(reason, "turn.interrupted");
  if (code === "turn.interrupted" || code === "turn.timeout" || isParking(reason))
    return { kind: "interrupted", spent };
  return { kind: "failed", failure: toFailure(reason), spent };
}

async function begin(deps: TurnDeps, turn: TurnRequest, { recorder, signal }: Running): Promise<void> {
  if (turn.history.some(({ body }) => body.type === "turn.started" && body.turnId === turn.turnId)) return;
  const { envelope, sandbox } = turn.sandboxContext;
  await recorder.record(
    [
      {
        type: "turn.started",
        v: 1,
        turnId: turn.turnId,
        runner: deps.runner.name,
        sandboxLevel: sandbox.level,
        envelope,
        envelopeHash: envelopeHash(envelope),
      },
      // A person who has the thread for a while does not move it out of its envelope.
      ...(admissionOf(turn).task === "attached" ? [] : await enteringEvents(deps.journal, turn, signal)),
      ...(turn.notices ?? []).flatMap((text) => notice(turn.turnId, text)),
    ],
    "system",
  );
  failpoint("turn.after-start");
}

function turnIo(deps: TurnDeps, turn: TurnRequest, { inbox, recorder, control, signal }: Running): BareIo {
  return {
    signal,
    record: (events, author) => {
      if (events.some(({ type }) => type === "model.requested")) turn.watch?.[Symbol.dispose]();
      return recorder.record(events, author);
    },
    stream(delta) {
      deps.live.active(turn.threadId);
      recorder.stream(delta);
    },
    closeOpenItems: () => recorder.closeOpenItems(),
    follow: (itemId, ongoing) => recorder.follow(itemId, ongoing),
    async ask(question, takenBack = signal) {
      const { threadId, turnId } = turn;
      const { isUnattended, approvalTimeoutMs: timeoutMs } = deps;
      const stored = takeStoredQuestion(turn.carried, question);
      const options = { threadId, turnId, signal: takenBack, isUnattended, timeoutMs, stored };
      const resolution = await ask(deps.lease.leased, inbox, question, options);
      // Cancelling a question stops the turn as well.
      if (resolution.decision === "cancel")
        control.abort(new HeddleError("turn.interrupted", "stopped by the answer to a question"));
      return resolution;
    },
    clientAnswer: (itemId, answered) => inbox.clientAnswer(itemId, answered),
    takeSteering: () => inbox.takeSteering(),
    steered: (until) => inbox.steered(until),
    changes: () => inbox.changes(),
    takeInjected: () => inbox.takeInjected(),
    takeArrived: () => inbox.takeArrived(),
    seenVersion: () => inbox.seenVersion(),
    ahead: () => workAhead(turn.sandboxContext.sandbox, () => deps.live.active(turn.threadId)),
  };
}

/** Other writers of the stream are users: a handful of events. */
const MAX_COMPLETE_TRIES = 100;

/** Appends the terminal event; undefined when steering arrived that the runner has not seen. */
async function complete(
  { journal, lease }: Pick<TurnDeps, "journal" | "lease">,
  inbox: TurnInbox,
  turn: TurnRequest,
  end: CarriedOut & { readonly startedAt: number; readonly signal: AbortSignal; readonly isRepeat: boolean },
): Promise<TerminalEvent | undefined> {
  const { outcome } = end;
  const { task } = admissionOf(turn);
  // Nobody is there any more who could take input.
  const isGone = task === "outside" || task === "attached";
  const outside = isGone ? await lastOfOutside(journal, turn, end) : undefined;
  failpoint("turn.before-complete");
  for (let tries = 0; tries < MAX_COMPLETE_TRIES; tries += 1) {
    const expectedVersion = await inbox.seenVersion();
    if (outcome.kind === "completed" && inbox.hasSteering() && !isGone) return undefined;
    const loose = end.hasLooseEnds ? await readLooseEnds(journal, turn) : [];
    const last = (await outside?.events(inbox)) ?? [];
    const failure = failureOf(outcome, end.signal);
    const body: EventOf<"turn.completed"> = {
      type: "turn.completed",
      v: 1,
      turnId: turn.turnId,
      status: outcome.kind,
      usage: outcome.spent.usage,
      ...(outcome.spent.costUsd === undefined ? {} : { costUsd: outcome.spent.costUsd }),
      ...(failure === undefined ? {} : { failure }),
      durationMs: Math.round(clockMs() - end.startedAt),
      ...(outcome.kind === "completed" && outcome.native !== undefined ? { native: outcome.native } : {}),
    };
    try {
      const appended = await lease.leased.append({
        stream: turn.threadId,
        author: "system",
        events: [...loose, ...last, body],
        expectedVersion,
        key: terminalKey(turn.turnId),
      });
      failpoint("turn.after-complete");
      return terminalIn(appended.events, turn.turnId);
    } catch (error) {
      if (isHeddleError(error) && error.code === "store.version-conflict") continue;
      // The process that has taken the turn ends it.
      if (isHeddleError(error) && error.code === "lease.lost" && !end.isRepeat) throw error;
      // Another process may have ended the turn, and a commit that reports a failure may have succeeded.
      const standing = await terminalOf(journal, turn);
      if (standing === undefined) throw error;
      return standing;
    }
  }
  throw new HeddleError(
    "store.busy",
    `turn ${turn.turnId} could not be closed: its stream is being changed by another process`,
  );
}

/**
 * Its client has left and reads nothing more: input that came too late is told as a message of the turn, which does not go on
 * for it.
 */
async function lastOfOutside(journal: ReadJournal, turn: TurnRequest, { outcome, hasBegun, hasLooseEnds }: CarriedOut) {
  const { leavingEvents } = await import("./leave-envelope.ts");
  const given = outcome.kind === "completed" ? { outcome: outcome.result } : {};
  const leaves = hasBegun && admissionOf(turn).task === "outside";
  const left = leaves ? await leavingEvents(journal, { ...turn, ...given }) : [];
  const late: EventBody[] = [];
  return {
    async events(inbox: TurnInbox): Promise<readonly EventBody[]> {
      // Among loose ends it is told already.
      const steering = hasLooseEnds ? [] : await inbox.takeSteering();
      for (const { input, ...said } of steering) late.push(...userMessage(turn.turnId, input, saidOf(said)));
      return [...late, ...left];
    },
  };
}

async function readLooseEnds(journal: ReadJournal, { turnId }: TurnRequest): Promise<readonly EventBody[]> {
  const [{ looseEnds }, { readTurn }] = await Promise.all([
    import("../recovery/recover.ts"),
    import("../threads/history.ts"),
  ]);
  return looseEnds(turnId, await readTurn(journal, turnId)).events;
}

/** undefined: there is none, or the store cannot be read. */
async function terminalOf(journal: ReadJournal, { turnId }: TurnRequest): Promise<TerminalEvent | undefined> {
  const { readTurn } = await import("../threads/history.ts");
  const events: readonly StoredEvent[] = await readTurn(journal, turnId).catch(() => []);
  return events.find((event): event is TerminalEvent => isTerminalOf(event, turnId));
}

function terminalIn(events: readonly StoredEvent[], turnId: string): TerminalEvent {
  const found = events.find((event): event is TerminalEvent => isTerminalOf(event, turnId));
  if (found === undefined) throw new HeddleError("internal", `turn ${turnId} has no terminal event`);
  return found;
}

function failureOf(outcome: TurnOutcome, signal: AbortSignal): Failure | undefined {
  if (outcome.kind === "failed") return outcome.failure;
  if (outcome.kind !== "interrupted") return undefined;
  const failure = toFailure(signal.reason, "turn.interrupted");
  return isParking(signal.reason) ? { ...failure, code: "turn.interrupted" } : failure;
}

function toInterrupt(failure: Failure): HeddleError {
  return new HeddleError(failure.code === "turn.timeout" ? "turn.timeout" : "turn.interrupted", failure.message);
}
