/**
 * A run that another program depends on: whatever happens, its result is written. The turn is the agent's
 * job; here it is watched and counted, and its end is reported, normally or while the process is being ended.
 *
 *   pending ─▶ running ─▶ completed | failed | cancelled
 */
import type { Heddle, StartTurn } from "@heddle/agent";
import { modelInfo, resolveProvider, type ProviderConfig } from "@heddle/models";
import {
  EXIT,
  exitCodeOf,
  HeddleError,
  toHeddleError,
  visibleText,
  type RunResult,
  type RunRetried,
  type TurnSettings,
} from "@heddle/protocol";
import { endProcess } from "../end-process.ts";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { behind, openScreen } from "../print/screen.ts";
import { openOutput, type Output } from "../print/output.ts";
import type { Printer } from "../print/output.ts";
import type { Stop } from "../stop.ts";
import { allowedTools } from "./allowed-tools.ts";
import { openArtifacts } from "./artifacts.ts";
import { asJson } from "./artifacts.ts";
import { runAttempts, type LastAttempt, type Retry } from "./attempts.ts";
import { capabilities, type CapabilityFacts } from "./capabilities.ts";
import { parseBatchFlags, type BatchFlags } from "./flags.ts";
import { watchIdle } from "./idle.ts";
import { readManifest } from "../input-file.ts";
import { keepRecord, lookAtGit } from "./keep.ts";
import { manifestOf } from "./manifest.ts";
import { runFinished, runResult } from "./result.ts";
import { holdResultFile, rootsOf } from "./flags.ts";
import { RunNotes } from "./run-notes.ts";

export interface BatchStart {
  readonly start: StartTurn;
  readonly workspace: string;
  /** Where agents may write, in this run or an earlier one. */
  readonly agentRoots: readonly string[];
  readonly home: string;
  readonly providers: readonly ProviderConfig[];
  /** Names of the configured MCP servers. */
  readonly servers: readonly string[];
  readonly printer: Printer;
  /** Called for each thread the run works in, as soon as it exists. */
  onThread(threadId: string): void;
}

/** After a signal the result is there within five seconds, also when the turn takes longer to end. */
const EARLY_RESULT_MS = 4000;
/** A repository that needs longer is not described. */
const GIT_MS = 10_000;
const GIT_AFTER_STOP_MS = 1500;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Batch {
  /** stderr, and a copy of it among the artifacts. */
  readonly err: Output;
  readonly #args: ParsedArgs;
  readonly #context: CommandContext;
  readonly #describe: CapabilityFacts;
  readonly #out = openOutput(process.stdout);
  readonly #notes: RunNotes;
  #flags: BatchFlags | undefined;
  #stop: Stop | undefined;
  #early: NodeJS.Timeout | undefined;
  #exitsWith: number | undefined;
  readonly #onExit = (code: number): void => this.#endAtOnce(code);
  /** Once the end is written a signal has nothing left to stop but the last words; before, it is for `stop` to answer. */
  readonly #onLateSignal = (): void => {
    if (this.#exitsWith !== undefined) endProcess(this.#exitsWith);
  };

  constructor(args: ParsedArgs, context: CommandContext, describe: Omit<CapabilityFacts, "version">) {
    this.#args = args;
    this.#context = context;
    this.#describe = { ...describe, version: context.version };
    this.#notes = new RunNotes(context.version);
    this.err = teed(openScreen(process.stderr), (text) => this.#notes.stderr(text));
  }

  /** Runs `exec` inside the contract: every way out of it ends with a result. */
  async around(exec: () => Promise<number>): Promise<number> {
    process.on("exit", this.#onExit);
    for (const name of SIGNALS) process.on(name, this.#onLateSignal);
    try {
      // Before anything else: every later refusal is in it. What the configuration adds to the roots is known later.
      await this.#holdResult(rootsOf(this.#args, this.#context.cwd));
      return await this.#finish(await exec());
    } catch (error) {
      const failure = toHeddleError(error);
      this.#notes.failure ??= failure;
      const code = await this.#finish(exitCodeOf(failure.code));
      this.#notes.stderr(`heddle: ${behind(failure.message)}\n`);
      if (code !== exitCodeOf(failure.code)) return code;
      throw error;
    } finally {
      clearTimeout(this.#early);
      process.off("exit", this.#onExit);
      this.#notes[Symbol.dispose]();
    }
  }

  async #holdResult(roots: readonly string[]): Promise<void> {
    const notes = this.#notes;
    notes.resultFile?.[Symbol.dispose]();
    // That there was no run is not written where it is refused.
    notes.resultFile = undefined;
    notes.resultFile = await holdResultFile(this.#args, this.#context, roots);
  }

  async open(stop: Stop): Promise<void> {
    this.#stop = stop;
    stop.signal.addEventListener("abort", () => {
      this.#early = setTimeout(() => this.#writeEarly(), EARLY_RESULT_MS);
    });
    const { cwd } = this.#context;
    const notes = this.#notes;
    const flags = parseBatchFlags(this.#args, cwd);
    this.#flags = flags;
    notes.runId = flags.runId;
    if (flags.manifestFile !== undefined) notes.manifest = await readManifest(flags.manifestFile);
    if (flags.artifactRoot === undefined) return;
    notes.artifacts = openArtifacts(flags.artifactRoot, flags.runId);
    notes.artifacts.state("pending");
    notes.throwIfFull();
  }

  /** What must not exist for the agent. */
  get masked(): readonly string[] {
    const { artifacts } = this.#notes;
    return artifacts === undefined ? [] : [artifacts.path];
  }

  /** Outside the turn, or before it. */
  failed(failure: HeddleError): void {
    this.#notes.failure ??= failure;
  }

  /** A run without a turn still has a thread. */
  ended(threadId: string): void {
    this.#notes.threadId ??= threadId;
  }

  async run(heddle: Heddle, request: BatchStart): Promise<LastAttempt> {
    const flags = this.#opened;
    const { stop } = flags;
    const notes = this.#notes;
    await this.#holdResult(request.agentRoots);
    notes.artifacts?.refuseLinksOf(request.agentRoots);
    const start = { ...request.start, settings: this.#settings(request) };
    notes.outputSchema = start.settings.outputSchema;
    await this.#lookBefore(heddle, request);
    this.#writeBeginning(heddle, { ...request, start });
    using idle = watchIdle(flags.idleTimeoutMs, () => {
      const seconds = (flags.idleTimeoutMs ?? 0) / 1000;
      stop.end(EXIT.timeout, new HeddleError("turn.timeout", `nothing has happened for ${seconds} s`));
    });
    try {
      return await runAttempts(heddle, {
        start,
        retries: flags.retries,
        limits: flags.limits,
        printer: request.printer,
        stop,
        onStarted: (handle) => {
          request.onThread(handle.threadId);
          notes.started(handle);
        },
        onEvent: (event) => notes.event(event),
        onActivity: () => idle.poke(),
        onEnded: (attempt) => notes.attempts.push(attempt),
        onRetry: async (retry, attempt) => {
          // The pause is Heddle's own.
          idle.poke(retry.delayMs);
          await this.#tellRetry(retry, attempt, request.printer);
        },
      });
    } finally {
      idle[Symbol.dispose]();
      await this.#keep(heddle, request);
    }
  }

  get #opened(): BatchFlags & { readonly stop: Stop } {
    if (this.#flags === undefined || this.#stop === undefined)
      throw new HeddleError("internal", "the batch is not open");
    return { ...this.#flags, stop: this.#stop };
  }

  #settings({ start, providers, servers }: BatchStart): TurnSettings {
    const { limits, allowedTools: names } = this.#opened;
    const { settings } = start;
    if (names.length === 0) return limits === undefined ? settings : { ...settings, limits };
    // The turn is refused: its agent has tools of its own.
    if (settings.runner !== undefined) return { ...settings, allowedTools: [...names] };
    const provider = resolveProvider(providers, settings.provider, this.#context.env);
    const { family } = modelInfo(provider, settings.model);
    const tools = [...new Set(allowedTools(names, { family, servers }))];
    return { ...settings, ...(limits === undefined ? {} : { limits }), allowedTools: tools };
  }

  async #lookBefore({ journal }: Heddle, { workspace, home }: BatchStart): Promise<void> {
    if (!this.#notes.wantsGit) return;
    const { env } = this.#context;
    const look = { workspace, masked: [home, ...this.masked], env, timeoutMs: GIT_MS };
    this.#notes.git = await lookAtGit({ ...look, signal: this.#opened.stop.signal }, journal.redactor);
  }

  #writeBeginning({ journal }: Heddle, { start, workspace, home, providers }: BatchStart): void {
    const { artifacts, manifest: given } = this.#notes;
    // The result repeats it too.
    this.#notes.manifest = given === undefined ? given : journal.redactor.body(given, JSON.stringify(given));
    if (artifacts === undefined) return;
    const { retries, idleTimeoutMs, runId } = this.#opened;
    const known = { heddleVersion: this.#context.version, runId, env: this.#context.env, retries, idleTimeoutMs };
    const { input, settings } = start;
    const { manifest } = this.#notes;
    const facts = manifestOf({ ...known, workspace, home, providers, input, settings, manifest });
    artifacts.write("manifest", asJson(journal.redactor.body(facts, JSON.stringify(facts))));
    artifacts.write("capabilities", asJson(capabilities(this.#describe)));
    this.#notes.throwIfFull();
  }

  async #keep(heddle: Heddle, { workspace, home }: BatchStart): Promise<void> {
    const { stop } = this.#opened;
    const isStopped = stop.signal.aborted;
    await keepRecord(heddle, this.#notes, {
      home,
      workspace,
      masked: [home, ...this.masked],
      env: this.#context.env,
      // What asked the turn to stop must not keep its last look from being taken; the time does.
      signal: isStopped ? AbortSignal.timeout(GIT_AFTER_STOP_MS) : stop.signal,
      timeoutMs: isStopped ? GIT_AFTER_STOP_MS : GIT_MS,
    });
  }

  async #tellRetry(retry: Retry, attempt: number, printer: Printer): Promise<void> {
    const { retries } = this.#opened;
    const { kind, reason, delayMs } = retry;
    const how = kind === "restart" ? "starting over" : "continuing in the same thread";
    await printer.notice(
      `the attempt failed (${reason}); ${how} in ${delayMs / 1000} s, retry ${attempt} of ${retries}`,
    );
    if (!this.#args.has("json")) return;
    const line: RunRetried = {
      type: "heddle.run.retried",
      retry: attempt,
      max_retries: retries,
      mode: kind,
      reason,
      delay_ms: delayMs,
    };
    await this.#out.write(toLine(line));
  }

  async #finish(code: number): Promise<number> {
    const notes = this.#notes;
    const exitCode = this.#write(code);
    const { artifacts, failure } = notes;
    if (artifacts?.failure !== undefined && artifacts.failure !== failure) {
      await this.err.write(`heddle: ${visibleText(artifacts.failure.message)}\n`);
    }
    if (notes.resultFailure !== undefined)
      await this.err.write(`heddle: ${visibleText(notes.resultFailure.message)}\n`);
    notes.isFinished = true;
    this.#exitsWith = exitCode;
    if (this.#args.has("json")) await this.#out.write(this.#lastLine(exitCode));
    return exitCode;
  }

  /** Writes everything that says how it ended, and answers the exit code: success that could not be kept is none. */
  #write(code: number, cause?: HeddleError): number {
    const notes = this.#notes;
    const exitCode = this.#exitCode(code);
    // What went wrong with the artifacts is in the result file, which comes after them.
    const result = (): RunResult => runResult({ ...notes.facts(cause), exitCode: this.#exitCode(code) });
    notes.writeEnd(result);
    if (this.#exitCode(code) !== exitCode) notes.writeEnd(result);
    return this.#exitCode(code);
  }

  #exitCode(code: number): number {
    if (code !== EXIT.ok || this.#notes.lost === undefined) return code;
    return this.#args.has("codex-exit-codes") ? EXIT.turnFailed : EXIT.infrastructure;
  }

  #lastLine(exitCode: number): string {
    return toLine(runFinished(runResult({ ...this.#notes.facts(), exitCode })));
  }

  #writeEarly(): void {
    const { stop } = this.#opened;
    this.#write(stop.exitCode ?? EXIT.interrupted, toHeddleError(stop.signal.reason, "turn.interrupted"));
  }

  /** The process ends and nothing can be waited for: a second signal, a grace that is over, a defect. */
  #endAtOnce(code: number): void {
    if (this.#notes.isFinished) return;
    const reason: unknown = this.#stop?.signal.reason;
    this.#notes.failure ??= toHeddleError(reason ?? new Error("the process ended before the run did"), "internal");
    this.#write(code);
    // A reader that is behind would hold up the end; it has the result file.
    if (this.#args.has("json") && process.stdout.writableLength === 0) process.stdout.write(this.#lastLine(code));
  }
}

function teed(output: Output, copy: (text: string) => void): Output {
  return {
    get isTerminal() {
      return output.isTerminal;
    },
    get isClosed() {
      return output.isClosed;
    },
    get isBehind() {
      return output.isBehind;
    },
    write(text) {
      copy(text);
      return output.write(text);
    },
  };
}
