/**
 * The only assembly: opens the journal, closes what a crash left open, and provides the calls that every door makes. A
 * turn belongs to the Heddle that admitted it, never to the connection that asked for it.
 */
import type { Journal } from "@heddle/journal";
import { FIRST_EPOCH, HeddleError, newThreadId, type Author, type By, type TurnSettings } from "@heddle/protocol";
import { requireOwnFolder } from "@heddle/tools";
import { admit, foresee, type Admitted, type AdmitOptions, type Repeat } from "./turns/admission.ts";
import { answer } from "./approvals/approvals.ts";
import { begin, openStore, type Begun } from "./begin.ts";
import { parking } from "./approvals/carried.ts";
import type { CarryOn, ParkedTurns } from "./approvals/carry-on.ts";
import { hopActs, type HopEngine } from "./approvals/hop-acts.ts";
import type { Background } from "./side-requests/background.ts";
import type { AllChildren, ParentTurn } from "./children/child-threads.ts";
import { createMeter, type Meter } from "./turns/limits.ts";
import { createBeside, runBesideOrAlone, userTimeoutMs } from "./turns/beside.ts";
import type {
  Acts,
  GivenAnswer,
  Heddle,
  HeddleOptions,
  InterruptReason,
  RunShell,
  ShellHandle,
  StartTurn,
  TurnHandle,
} from "./heddle.ts";
import { grantedSandbox } from "./approvals/hop.ts";
import { createLive } from "./turns/live.ts";
import { engineMessages, type EngineMessages } from "./messages/engine-messages.ts";
import { lazyMcpLogins, type LazyMcpLogins } from "./mcp/mcp-logins.ts";
import type { Member } from "./recovery/membership.ts";
import { createPendingEnds, type PendingEnds } from "./recovery/pending-ends.ts";
import { EMBEDDED } from "./runners/config.ts";
import { createRunners, type Runners } from "./runners/registry.ts";
import type { Runner, TurnRequest } from "./runners/runner.ts";
import { asksModel, createTurnsByOthers, sandboxSettings, type TurnsByOthers } from "./runners/by-others.ts";
import { createSerial } from "./turns/serial.ts";
import { endInputs, endTerminals, listCommands, listTerminals, writeInput } from "./sandboxes/terminals.ts";
import type { EndingThreads } from "./threads/end-threads.ts";
import { StartWatch } from "./turns/start-watch.ts";
import { interruptTurn, type Interruptible } from "./turns/turn-acts.ts";
import { createThreadSandboxes, type EnterThread, type ThreadSandboxes } from "./sandboxes/thread-sandboxes.ts";
import { holdTurn } from "./turns/turn-lease.ts";
import { createPolicies, type Policies } from "./turns/policy.ts";
import { admissionOf } from "./turns/outcome.ts";
import { awaitTerminal, type TerminalEvent } from "./turns/terminal.ts";
import { runTurn, type TurnDeps } from "./turns/turn.ts";

/** Not loaded by a plain run, which makes a new thread. */
const threads = () => import("./threads/threads.ts");
const ends = () => import("./threads/end-threads.ts");

export async function openHeddle(options: HeddleOptions): Promise<Heddle> {
  const journal = await openStore(options);
  // A token that is fetched while a turn runs must not be stored.
  for (const { credential } of options.providers) credential?.onSecrets?.(journal.redactor.learn);
  try {
    return new Engine(options, await begin(options, journal));
  } catch (error) {
    await journal[Symbol.asyncDispose]();
    throw error;
  }
}

interface RunningTurn extends Interruptible {
  readonly runner: string;
  readonly done: Promise<TerminalEvent>;
  readonly meter: Meter;
}

/** `under`: of a turn of a child thread, the turn that has started it. */
type ThreadTurn = Omit<StartTurn, "task" | "thread"> &
  Pick<AdmitOptions & EnterThread, "by" | "task" | "timeoutMs" | "outside" | "staysInSandbox"> & {
    readonly under?: ParentTurn;
  };

class Engine implements Heddle {
  readonly journal: Journal;
  readonly recoveredTurns: number;
  readonly member: Member | undefined;
  readonly #messages: EngineMessages;
  readonly #options: HeddleOptions;
  readonly #live = createLive();
  readonly #sandboxes: ThreadSandboxes;
  readonly #runners: Runners;
  readonly #beside = createBeside();
  readonly #policies: Policies;
  readonly #running = new Map<string, RunningTurn>();
  readonly #starts = createSerial();
  readonly #ends: PendingEnds;
  readonly #parked: ParkedTurns | undefined;
  readonly #children: AllChildren | undefined;
  readonly #background: Background | undefined;
  readonly #mcpLogins: LazyMcpLogins;
  readonly #byOthers: TurnsByOthers;
  readonly #engine: CarryOn & HopEngine;

  constructor(options: HeddleOptions, begun: Begun) {
    const { journal, member } = begun;
    const { recovered, openHooks, openParked, openChildren, openMessages, background } = begun;
    this.journal = journal;
    this.member = member;
    this.recoveredTurns = recovered.closed;
    this.#background = background;
    this.#options = options;
    this.#messages = engineMessages(this, options);
    this.#byOthers = createTurnsByOthers(this, options, (start) => this.#startTurn(start));
    this.#ends = createPendingEnds(journal, options);
    this.#mcpLogins = lazyMcpLogins({ ...options, onSecrets: journal.redactor.learn });
    this.#sandboxes = createThreadSandboxes(options, {
      journal,
      mcpLogins: this.#mcpLogins,
      starts: this.#starts,
      isWorkedIn: (threadId) => this.#isWorkedIn(threadId),
    });
    this.#policies = createPolicies(options, openHooks);
    this.#children = openChildren?.({
      journal,
      limits: options.childThreads ?? { maxDepth: 0, maxOpen: 0 },
      as: (by) => this.as(by),
      start: (start) => this.#startTurn(start),
      done: (turnId) => this.#running.get(turnId)?.done,
    });
    const messages = openMessages?.({ journal, ...this.#messages });
    this.#runners = createRunners(options, journal, { children: this.#children, messages });
    this.#engine = {
      journal,
      starts: this.#starts,
      settings: (threadId: string) => this.lastSettings(threadId),
      wait: (threadId: string) => this.#sandboxes.wait(threadId),
      check: async (settings: TurnSettings) => (await this.#runners.of(settings)).check(settings),
      enter: (thread: EnterThread) => this.#sandboxes.enter(thread),
      run: (turn: TurnRequest, epoch: number) => void this.#run(turn, epoch).catch(() => undefined),
    };
    this.#parked = openParked?.(this.#engine, recovered.parked);
  }

  get #ending(): EndingThreads {
    const [starts, sandboxes] = [this.#starts, this.#sandboxes];
    const isWorkedIn = (threadId: string): boolean => this.#isWorkedIn(threadId);
    return { journal: this.journal, home: this.#options.home, starts, sandboxes, isWorkedIn };
  }

  get mcp(): Heddle["mcp"] {
    return this.#sandboxes.servers;
  }

  get mayStartThreads(): boolean {
    return this.#children !== undefined;
  }

  get messageRules(): Heddle["messageRules"] {
    return this.#messages.rules;
  }

  get unstoredTurnEnds(): number {
    return this.#ends.lost;
  }

  as(by: Author): Acts {
    const { journal } = this;
    return {
      createThread: async (thread, beginning) => {
        requireOwnFolder(thread.workspace);
        return (await import("./threads/create-thread.ts")).createThread(journal, thread, { ...beginning, by });
      },
      forkThread: async (fork) => (await threads()).forkThread(journal, { ...fork, by }),
      nameThread: async (name) => (await threads()).nameThread(journal, { ...name, by }),
      archiveThread: async (thread) => (await ends()).archiveOne(this.#ending, { ...thread, by }),
      deleteThread: async (thread) => (await ends()).deleteOne(this.#ending, { ...thread, by }),
      ...hopActs({ ...this.#engine, home: this.#options.home }, by),
      startTurn: (start) => this.#startTurn({ ...start, by }),
      compact: (threadId, given) =>
        this.#starts.run(threadId, async () => {
          const settings = given ?? (await this.lastSettings(threadId));
          if (settings === undefined) throw new HeddleError("usage.invalid", `thread ${threadId} has had no turn yet`);
          return this.#continue(threadId, { input: [], settings, task: "compact", by });
        }),
      runShell: (shell) => this.#runShell({ ...shell, by }),
      steer: async (turnId, input, said) =>
        (await import("./turns/sent.ts")).steer({ journal, runners: this.#runners }, turnId, { ...said, input, by }),
      changeTurn: async (turnId, change) =>
        (await import("./turns/sent.ts")).changeTurn({ journal, runners: this.#runners }, turnId, { ...change, by }),
      interrupt: (turnId, reason) =>
        interruptTurn(journal, this.#running.get(turnId), { turnId, reason, by, ends: this.#ends }),
      answer: (given) => this.#answer({ ...given, by }),
      outside: () => this.#byOthers.outside(by),
      attach: (given) => this.#byOthers.attach({ ...given, by }),
      messages: () => this.#messages.acts(by),
    };
  }

  async #startTurn({ thread, ...start }: ThreadTurn & Pick<StartTurn, "thread">): Promise<TurnHandle> {
    if (typeof thread !== "string") return this.#startNew(thread, start);
    // One at a time in a thread: opening its sandbox for one turn must not end the sandbox of another.
    return this.#starts.run(thread, async () => {
      if (this.#options.isUnattended) await (await import("./recovery/recover.ts")).closeParked(this.journal, thread);
      return this.#continue(thread, start);
    });
  }

  async #startNew(thread: Exclude<StartTurn["thread"], string>, start: ThreadTurn): Promise<TurnHandle> {
    const newThread = "fork" in thread ? await (await threads()).planSoundFork(this.journal, thread.fork) : thread;
    return this.#start(newThreadId(), newThread.workspace, start, { origin: newThread.origin, newThread });
  }

  /**
   * A turn of an existing thread: in the folder that is named now, or was named since its last turn, or where that one
   * ran.
   */
  async #continue(threadId: string, start: ThreadTurn): Promise<TurnHandle> {
    const { workspace: current, origin, settings } = await (await threads()).requireSound(this.journal, threadId);
    const next = settings["cwd"] === undefined ? current : (await this.storedSettings(threadId)).workspace;
    const { workspace = next } = start;
    return this.#start(threadId, workspace, start, {
      origin,
      ...(workspace === current ? {} : { movedTo: workspace }),
    });
  }

  async #start(
    threadId: string,
    workspace: string,
    start: ThreadTurn,
    { origin, ...thread }: Pick<AdmitOptions, "newThread" | "movedTo"> & Pick<TurnRequest, "origin">,
  ): Promise<TurnHandle> {
    const { workspace: _workspace, notices = [], watch: given, under, staysInSandbox, ...asked } = start;
    const { slowStartMs: slowMs, log } = this.#options;
    const watch = given ?? new StartWatch("look at the thread", { slowMs, log });
    using unless = new DisposableStack();
    unless.use(watch);
    const { settings, task } = asked;
    const dayLimits = asksModel(task) ? this.#options.dayLimits : undefined;
    const request: AdmitOptions = { ...asked, threadId, ...thread, dayLimits };
    const repeat = await foresee(this.journal, request);
    if (repeat !== undefined) return this.#follow(threadId, repeat);
    requireOwnFolder(workspace);
    watch.step("check the settings");
    const runner = asksModel(task) ? await this.#runners.ready(asked) : undefined;
    watch.step("open the sandbox");
    const { newThread } = thread;
    const message = await this.#messages.boundOf(threadId, asked);
    const within = { settings: sandboxSettings(task, settings), staysInSandbox, under: under?.envelope, message };
    const entering = this.#sandboxes.enter({ threadId, workspace, newThread, ...within });
    const [sandboxContext] = await Promise.all([entering, runner?.ahead?.(settings)]);
    watch.step("admit the turn");
    let admitted: Admitted;
    try {
      admitted = await admit(this.journal, { ...request, bound: sandboxContext.bound });
    } catch (error) {
      if (newThread !== undefined) await this.#sandboxes.drop(threadId);
      throw error;
    }
    if (admitted.kind === "repeat") return this.#follow(threadId, admitted);
    const { turnId, history } = admitted;
    const turn = { threadId, turnId, workspace, origin, settings, history, sandboxContext, notices, watch };
    unless.move();
    // What was granted for the thread is for attended turns.
    const ready = this.#options.isUnattended ? turn : { ...turn, sandboxContext: await grantedSandbox(turn) };
    const done = this.#run(ready, FIRST_EPOCH, under?.turnId);
    return { threadId, turnId, admittedVersion: history.at(-1)?.version ?? 0, done };
  }

  #runShell({ threadId, settings, by, ...shell }: RunShell & By): Promise<ShellHandle> {
    const timeoutMs = userTimeoutMs(shell.timeoutMs);
    const asked = { threadId, command: shell.command, timeoutMs, by };
    return runBesideOrAlone(asked, {
      starts: this.#starts,
      beside: this.#beside,
      running: this.#running,
      begin: (subject) => this.#continue(threadId, { input: [], settings, task: "shell", subject, timeoutMs, by }),
    });
  }

  endCommands(threadId: string): Promise<boolean> {
    return this.#starts.run(threadId, async () => {
      if (this.#isWorkedIn(threadId)) return false;
      await this.#sandboxes.leave(threadId);
      return true;
    });
  }

  async releaseTurn(turnId: string, reason: InterruptReason): Promise<"left" | "ending" | "elsewhere"> {
    const running = this.#running.get(turnId);
    if (running === undefined) return "elsewhere";
    const isLeft = await this.#canBeLeft(running.threadId, turnId);
    if (isLeft) running.control.abort(parking(reason.message));
    else
      await this.as("system")
        .interrupt(turnId, reason)
        .catch(() => undefined); // It stops, recorded or not.
    return isLeft ? "left" : "ending";
  }

  async #answer(given: GivenAnswer & By): Promise<void> {
    const { threadId } = given;
    const turnId = await answer(this.journal, given);
    if (!this.#running.has(turnId)) await this.#parked?.carryOn(threadId, turnId);
  }

  async summarise(threadId: string): Promise<string | undefined> {
    await (await threads()).requireSound(this.journal, threadId);
    if (this.#background !== undefined) return this.#background.summarise(threadId);
    throw new HeddleError("provider.configuration-required", "summaries are turned off by background.model");
  }

  storedSettings: Heddle["storedSettings"] = async (threadId, beforeClientId) =>
    (await import("./settings/stored.ts")).readStoredSettings(this.journal, threadId, beforeClientId);
  sample: Heddle["sample"] = async (question, signal) =>
    (await import("./side-requests/sample.ts")).sample({ ...this.#options, journal: this.journal }, question, signal);
  findThread: Heddle["findThread"] = async (selector) => (await threads()).findThread(this.journal, selector);
  lastSettings: Heddle["lastSettings"] = async (threadId) =>
    (await import("./threads/past.ts")).readLastSettings(this.journal, threadId);
  openSandboxes: Heddle["openSandboxes"] = () => this.#sandboxes.count();
  terminals: Heddle["terminals"] = (threadId) => listTerminals(this.journal, threadId, this.#sandboxes.state(threadId));
  endInputs: Heddle["endInputs"] = async (threadId, id) => endInputs(this.#sandboxes.state(threadId), id);
  writeInput: Heddle["writeInput"] = (threadId, id, text) => writeInput(this.#sandboxes.state(threadId), id, text);
  runningCommands: Heddle["runningCommands"] = (threadId) =>
    listCommands(this.#sandboxes.state(threadId), this.#sandboxes.own(threadId));
  endTerminals: Heddle["endTerminals"] = (threadId, id) => endTerminals(this.#sandboxes.state(threadId), id);
  mcpLogins: Heddle["mcpLogins"] = () => this.#mcpLogins.open();
  environmentOf: Heddle["environmentOf"] = (policy) => this.#sandboxes.environmentOf(policy);
  onDelta: Heddle["onDelta"] = (threadId, listener) => this.#live.listen(threadId, listener);
  onActivity: Heddle["onActivity"] = (threadId, listener) => this.#live.watch(threadId, listener);

  async [Symbol.asyncDispose](): Promise<void> {
    const closing = new HeddleError("turn.interrupted", "Heddle is closing");
    this.#ends.close();
    await this.#parked?.[Symbol.asyncDispose]();
    const ends = [...this.#running].map(async ([turnId, { threadId, control, done }]) => {
      const isLeft = await this.#canBeLeft(threadId, turnId).catch(() => false);
      control.abort(isLeft ? parking(closing.message) : closing);
      await done;
    });
    await Promise.allSettled(ends);
    await this.#messages[Symbol.asyncDispose]();
    await this.#background?.[Symbol.asyncDispose]();
    await this.#mcpLogins[Symbol.asyncDispose]();
    await this.#sandboxes[Symbol.asyncDispose]();
    await this.member?.[Symbol.asyncDispose]();
    await this.journal[Symbol.asyncDispose]();
  }

  #runnerOf(turn: TurnRequest): Runner {
    const { task, settings } = admissionOf(turn);
    // A command of the user needs no agent.
    return this.#byOthers.runnerOf(task, turn.turnId) ?? this.#runners.loaded(task === "shell" ? {} : settings);
  }

  #run(turn: TurnRequest, epoch: number, parentTurnId?: string): Promise<TerminalEvent> {
    const control = new AbortController();
    const outer = parentTurnId === undefined ? undefined : this.#running.get(parentTurnId)?.meter;
    // What a person does in another interface is counted, and cannot be stopped by that.
    const limits = admissionOf(turn).task === "attached" ? {} : (turn.settings.limits ?? {});
    const meter = createMeter(limits, outer);
    const lease = holdTurn(this.journal, { subject: turn.turnId, epoch }, this.#options.log);
    const runner = this.#runnerOf(turn);
    const deps: TurnDeps = {
      journal: this.journal,
      lease,
      meter,
      live: this.#live,
      runner,
      policies: this.#policies,
      beside: this.#beside,
      isUnattended: this.#options.isUnattended,
      approvalTimeoutMs: this.#options.approvalTimeoutMs,
      ends: this.#ends,
      leave: async (left, outcome) => {
        await this.#children?.end(left.turnId);
        await this.#sandboxes.end(left, outcome);
      },
    };
    const done = lease.during(runTurn(deps, turn, control)).finally(() => {
      this.#running.delete(turn.turnId);
      this.#sandboxes.wait(turn.threadId);
    });
    this.#running.set(turn.turnId, { runner: runner.name, threadId: turn.threadId, control, lease, meter, done });
    return done;
  }

  /** Nobody carries on with a process of an agent program. */
  async #canBeLeft(threadId: string, turnId: string): Promise<boolean> {
    if (this.#running.get(turnId)?.runner !== EMBEDDED) return false;
    return (await this.#parked?.canBeLeft(threadId, turnId)) ?? false;
  }

  #isWorkedIn(threadId: string): boolean {
    return [...this.#running.values()].some((turn) => turn.threadId === threadId);
  }

  #follow(threadId: string, { turnId, admittedVersion }: Repeat): TurnHandle {
    const done = this.#running.get(turnId)?.done ?? awaitTerminal(this.journal, threadId, turnId, admittedVersion);
    return { threadId, turnId, admittedVersion, done };
  }
}
