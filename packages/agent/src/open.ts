/**
 * The only assembly: opens the journal, closes what a crash left open, and provides the calls that every door makes. A
 * turn belongs to the Heddle that admitted it, never to the connection that asked for it.
 */
import { openJournal, type Journal, type ThreadRow } from "@heddle/journal";
import { FIRST_EPOCH, HeddleError, newThreadId, reasonOf } from "@heddle/protocol";
import type { Author, By, TurnSettings } from "@heddle/protocol";
import { requireOwnFolder } from "@heddle/tools";
import { admit, foresee, type Admitted, type AdmitOptions, type Repeat } from "./turns/admission.ts";
import { answer } from "./approvals/approvals.ts";
import { parking } from "./approvals/carried.ts";
import type { createParkedTurns, ParkedTurns } from "./approvals/carry-on.ts";
import type { Background } from "./side-requests/background.ts";
import { createBeside, userTimeoutMs } from "./turns/beside.ts";
import type {
  Acts,
  GivenAnswer,
  Heddle,
  HeddleOptions,
  InterruptReason,
  RunShell,
  ShellHandle,
  StartTurn,
  Terminal,
  TurnHandle,
} from "./heddle.ts";
import { grantedSandbox } from "./approvals/hop.ts";
import type { readStoredSettings } from "./settings/stored.ts";
import { keysInUse } from "./keys-in-use.ts";
import { createLive } from "./turns/live.ts";
import { lazyMcpLogins, type LazyMcpLogins } from "./mcp/mcp-logins.ts";
import { createPendingEnds, type PendingEnds } from "./recovery/pending-ends.ts";
import type { Recovered } from "./recovery/recover.ts";
import type { Runner, TurnRequest } from "./runners/runner.ts";
import { createEmbeddedRunner } from "./runners/embedded.ts";
import type { Sample, SampleQuestion } from "./side-requests/sample.ts";
import { createSerial } from "./turns/serial.ts";
import { endInputs, endTerminals, listCommands, listTerminals } from "./sandboxes/terminals.ts";
import type { ArchiveThread, DeleteThread, ThreadSelector } from "./threads/threads.ts";
import { StartWatch } from "./turns/start-watch.ts";
import { interruptTurn, type Interruptible } from "./turns/turn-acts.ts";
import { createThreadSandboxes, type EnterThread, type ThreadSandboxes } from "./sandboxes/thread-sandboxes.ts";
import { holdTurn } from "./turns/turn-lease.ts";
import { createPolicies, type OpenHooks, type Policies } from "./turns/policy.ts";
import { awaitTerminal, type TerminalEvent } from "./turns/terminal.ts";
import { runTurn, type TurnDeps } from "./turns/turn.ts";

/** For existing threads: a plain run makes a new one and does not load this. */
const threads = () => import("./threads/threads.ts");

export async function openHeddle(options: HeddleOptions): Promise<Heddle> {
  const { home, redactor, hooks = [], isUnattended } = options;
  const journal = await openJournal({ home, secrets: keysInUse(options), redactor, leaseMs: options.leaseMs });
  // A token that is fetched while a turn runs must not be stored.
  for (const { credential } of options.providers) credential?.onSecrets?.(journal.redactor.learn);
  try {
    const recovered = await recoverOnOpen(journal, home);
    const openHooks = hooks.length === 0 ? undefined : (await import("./hooks/hooks.ts")).checkedHooks(hooks);
    const openParked = isUnattended ? undefined : (await import("./approvals/carry-on.ts")).createParkedTurns;
    const background = await openBeside(options, journal);
    return new Engine(options, journal, { recovered, openHooks, openParked, background });
  } catch (error) {
    await journal[Symbol.asyncDispose]();
    throw error;
  }
}

/** Closes what dead processes left. Most starts find nothing and load nothing for it. */
async function recoverOnOpen(journal: Journal, home: string): Promise<Recovered> {
  if (journal.damage !== undefined) return NOTHING_RECOVERED;
  const [held, ephemeral] = [await journal.leases.held(), await journal.threads.ephemeral()];
  if (held.length + ephemeral.length === 0) return NOTHING_RECOVERED;
  const { forgetEphemeral, recover } = await import("./recovery/recover.ts");
  const recovered = await recover(journal);
  await forgetEphemeral(journal, home);
  return recovered;
}

const NOTHING_RECOVERED: Recovered = { closed: 0, parked: [] };

/** For servers alone. */
async function openBeside({ background, providers, env, isUnattended, log }: HeddleOptions, journal: Journal) {
  if (!isUnattended) journal.finishPurges().catch((error: unknown) => log?.(reasonOf(error)));
  if (background === undefined) return undefined;
  const { openBackground } = await import("./side-requests/background.ts");
  return openBackground({ journal, providers, env, model: background.model });
}

interface RunningTurn extends Interruptible {
  readonly done: Promise<TerminalEvent>;
}

interface Begun {
  readonly recovered: Recovered;
  readonly openHooks: OpenHooks | undefined;
  readonly openParked: typeof createParkedTurns | undefined;
  readonly background: Background | undefined;
}

type ThreadTurn = Omit<StartTurn, "task" | "thread"> & Pick<AdmitOptions, "by" | "task" | "timeoutMs">;

class Engine implements Heddle {
  readonly journal: Journal;
  readonly recoveredTurns: number;
  readonly #options: HeddleOptions;
  readonly #live = createLive();
  readonly #sandboxes: ThreadSandboxes;
  readonly #runner: Runner;
  readonly #beside = createBeside();
  readonly #policies: Policies;
  readonly #running = new Map<string, RunningTurn>();
  readonly #starts = createSerial();
  readonly #ends: PendingEnds;
  readonly #parked: ParkedTurns | undefined;
  readonly #background: Background | undefined;
  readonly #mcpLogins: LazyMcpLogins;

  constructor(options: HeddleOptions, journal: Journal, { recovered, openHooks, openParked, background }: Begun) {
    this.journal = journal;
    this.recoveredTurns = recovered.closed;
    this.#background = background;
    this.#options = options;
    this.#ends = createPendingEnds(journal, options);
    this.#mcpLogins = lazyMcpLogins({ ...options, onSecrets: journal.redactor.learn });
    this.#sandboxes = createThreadSandboxes(options, {
      journal,
      mcpLogins: this.#mcpLogins,
      starts: this.#starts,
      isWorkedIn: (threadId) => this.#isWorkedIn(threadId),
    });
    this.#policies = createPolicies(options, openHooks);
    this.#runner = options.runner ?? createEmbeddedRunner(options, journal);
    const engine = {
      journal,
      starts: this.#starts,
      check: (settings: TurnSettings) => this.#runner.check(settings),
      enter: (thread: EnterThread) => this.#sandboxes.enter(thread),
      run: (turn: TurnRequest, epoch: number) => void this.#run(turn, epoch).catch(() => undefined),
    };
    this.#parked = openParked?.(engine, recovered.parked);
  }

  get mcp(): Heddle["mcp"] {
    return this.#sandboxes.servers;
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
      archiveThread: (thread) => this.#archiveThread({ ...thread, by }),
      deleteThread: (thread) => this.#deleteThread({ ...thread, by }),
      startTurn: (start) => this.#startTurn({ ...start, by }),
      compact: (threadId, given) =>
        this.#starts.run(threadId, async () => {
          const settings = given ?? (await this.lastSettings(threadId));
          if (settings === undefined) throw new HeddleError("usage.invalid", `thread ${threadId} has had no turn yet`);
          return this.#continue(threadId, { input: [], settings, task: "compact", by });
        }),
      runShell: (shell) => this.#runShell({ ...shell, by }),
      steer: async (turnId, input, clientId) =>
        (await import("./turns/sent.ts")).steerOnce(journal, turnId, { input, clientId, by }),
      changeTurn: async (turnId, change) =>
        (await import("./turns/sent.ts")).changeTurn(journal, turnId, { ...change, by }),
      interrupt: (turnId, reason) =>
        interruptTurn(journal, this.#running.get(turnId), { turnId, reason, by, ends: this.#ends }),
      answer: (given) => this.#answer({ ...given, by }),
    };
  }

  async #startTurn({ thread, ...start }: StartTurn & By): Promise<TurnHandle> {
    if (typeof thread !== "string") return this.#startNew(thread, start);
    // One at a time in a thread: opening its sandbox for one turn must not end the sandbox of another.
    return this.#starts.run(thread, async () => {
      if (this.#options.isUnattended) await (await import("./recovery/recover.ts")).closeParked(this.journal, thread);
      return this.#continue(thread, start);
    });
  }

  async #startNew(thread: Exclude<StartTurn["thread"], string>, start: ThreadTurn): Promise<TurnHandle> {
    const isNew = !("fork" in thread);
    const newThread = isNew ? thread : await (await threads()).planSoundFork(this.journal, thread.fork);
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
    const { workspace: _workspace, notices = [], watch: given, ...asked } = start;
    const { slowStartMs: slowMs, log } = this.#options;
    const watch = given ?? new StartWatch("look at the thread", { slowMs, log });
    using unless = new DisposableStack();
    unless.use(watch);
    const { settings, task } = asked;
    const request: AdmitOptions = { ...asked, threadId, ...thread };
    const repeat = await foresee(this.journal, request);
    if (repeat !== undefined) return this.#follow(threadId, repeat);
    requireOwnFolder(workspace);
    // A command of the user asks no model.
    const asksModel = task !== "shell";
    watch.step("check the settings");
    if (asksModel) await this.#runner.check(settings);
    watch.step("open the sandbox");
    const entering = this.#sandboxes.enter({ threadId, workspace, settings });
    const [sandboxContext] = await Promise.all([entering, asksModel ? this.#runner.ahead?.(settings) : undefined]);
    watch.step("admit the turn");
    let admitted: Admitted;
    try {
      admitted = await admit(this.journal, request);
    } catch (error) {
      if (thread.newThread !== undefined) await this.#sandboxes.drop(threadId);
      throw error;
    }
    if (admitted.kind === "repeat") return this.#follow(threadId, admitted);
    const { turnId, history } = admitted;
    const turn = { threadId, turnId, workspace, origin, settings, history, sandboxContext, notices, watch };
    unless.move();
    // What was granted for the thread is for attended turns.
    const done = this.#run(this.#options.isUnattended ? turn : { ...turn, sandboxContext: await grantedSandbox(turn) });
    return { threadId, turnId, admittedVersion: history.at(-1)?.version ?? 0, done };
  }

  async #runShell({ threadId, command, settings, by, ...wanted }: RunShell & By): Promise<ShellHandle> {
    const timeoutMs = userTimeoutMs(wanted.timeoutMs);
    for (;;) {
      const begun = await this.#starts.run(threadId, async () => {
        const beside = this.#beside.run(threadId, { command, timeoutMs, by });
        const running = beside === undefined ? undefined : this.#running.get(beside);
        if (beside !== undefined && running !== undefined) return { turnId: beside, done: running.done };
        if (this.#isWorkedIn(threadId)) return undefined;
        return this.#continue(threadId, { input: [], settings, task: "shell", subject: command, timeoutMs, by });
      });
      if (begun !== undefined) return begun;
      // A turn of this process takes no command while it begins or ends; both are soon over.
      const here = [...this.#running.values()].filter((turn) => turn.threadId === threadId);
      await Promise.race([this.#beside.opened(threadId), ...here.map(({ done }) => done.catch(() => undefined))]);
    }
  }

  terminals(threadId: string): Promise<readonly Terminal[]> {
    return listTerminals(this.journal, threadId, this.#sandboxes.state(threadId));
  }

  endCommands(threadId: string): Promise<boolean> {
    return this.#starts.run(threadId, async () => {
      if (this.#isWorkedIn(threadId)) return false;
      await this.#sandboxes.leave(threadId);
      return true;
    });
  }

  async endInputs(threadId: string, processId?: string): Promise<number> {
    return endInputs(this.#sandboxes.state(threadId), processId);
  }

  async findThread(selector: ThreadSelector): Promise<ThreadRow> {
    return (await threads()).findThread(this.journal, selector);
  }

  async storedSettings(threadId: string, beforeClientId?: string): ReturnType<typeof readStoredSettings> {
    const stored = await import("./settings/stored.ts");
    return stored.readStoredSettings(this.journal, threadId, beforeClientId);
  }

  async lastSettings(threadId: string): Promise<TurnSettings | undefined> {
    return (await import("./threads/past.ts")).readLastSettings(this.journal, threadId);
  }

  #archiveThread(thread: ArchiveThread & By): Promise<void> {
    const { threadId, isArchived } = thread;
    return this.#starts.run(threadId, async () => {
      await (await threads()).archiveThread(this.journal, thread);
      if (isArchived && !this.#isWorkedIn(threadId)) await this.#sandboxes.leave(threadId);
    });
  }

  #deleteThread(thread: DeleteThread & By): Promise<void> {
    const { threadId } = thread;
    return this.#starts.run(threadId, async () => {
      const { purgeThread, removeFiles } = await threads();
      await purgeThread(this.journal, thread);
      await this.#sandboxes.drop(threadId);
      await removeFiles(this.#options.home, threadId);
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

  async sample(question: SampleQuestion, signal: AbortSignal): Promise<Sample> {
    const { sample } = await import("./side-requests/sample.ts");
    return sample({ ...this.#options, journal: this.journal }, question, signal);
  }

  runningCommands: Heddle["runningCommands"] = (threadId) => listCommands(this.#sandboxes.state(threadId));
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
    await this.#background?.[Symbol.asyncDispose]();
    await this.#mcpLogins[Symbol.asyncDispose]();
    await this.#sandboxes[Symbol.asyncDispose]();
    await this.journal[Symbol.asyncDispose]();
  }

  #run(turn: TurnRequest, epoch = FIRST_EPOCH): Promise<TerminalEvent> {
    const control = new AbortController();
    const lease = holdTurn(this.journal, { subject: turn.turnId, epoch }, this.#options.log);
    const deps: TurnDeps = {
      journal: this.journal,
      lease,
      live: this.#live,
      runner: this.#runner,
      policies: this.#policies,
      beside: this.#beside,
      isUnattended: this.#options.isUnattended,
      approvalTimeoutMs: this.#options.approvalTimeoutMs,
      ends: this.#ends,
      leave: (left, outcome) => this.#sandboxes.end(left, outcome),
    };
    const done = lease.during(runTurn(deps, turn, control)).finally(() => {
      this.#running.delete(turn.turnId);
      this.#sandboxes.wait(turn.threadId);
    });
    this.#running.set(turn.turnId, { threadId: turn.threadId, control, lease, done });
    return done;
  }

  async #canBeLeft(threadId: string, turnId: string): Promise<boolean> {
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
