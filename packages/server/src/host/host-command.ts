/**
 * One command that a client runs outside any thread, in a sandbox of its own that is closed behind it. It ends with its
 * time, when it is told to, and with the connection it came from.
 *
 *   opening ─▶ running ─▶ closing the sandbox ─▶ done
 *      └──────────┴─(time, terminate, connection gone)─▶ killed ─▶ done
 */
import { constants } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { CodexNotification } from "@heddle/dialects/codex-app-server";
import { isHeddleError } from "@heddle/protocol";
import {
  commandEnvironment,
  openSandbox,
  openUnconfined,
  startCommand,
  type Sandbox,
  type SandboxPolicy,
} from "@heddle/tools";
import type { Call } from "../rpc/call.ts";
import type { Connection } from "../rpc/connection.ts";
import { resizeTerminal, type TerminalSize } from "./terminal.ts";

/** As the shells say it. */
const TIMED_OUT = 124;
const KILLED = 137;
const NOT_FOUND = 127;
/** A command whose reader is behind waits with it, so long; then the reader's own cap counts. */
const LOOK_MS = 5;
const BEHIND_MS = 60_000;
/** What may wait for a command that does not read. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

export interface HostCommandOptions {
  readonly connection: Connection;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Found out when the command has its id already: what follows it may come at once. */
  readonly commandContext: () => Promise<CommandContext>;
  readonly takesInput: boolean;
  readonly hasTerminal: boolean;
  /** What its client is sent of its output; absent: it is kept for the end. */
  readonly onOutput?: ((chunk: OutputChunk) => CodexNotification) | undefined;
  /** No output is sent before it, and what cannot be started fails, because its client still waits for an answer. */
  readonly answered?: Promise<void> | undefined;
  /** Of each stream. */
  readonly capBytes: number;
  readonly timeoutMs: number | undefined;
}

export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly deltaBase64: string;
  readonly capReached: boolean;
}

export interface CommandContext {
  readonly cwd: string;
  /** Not confined: the client asked for full access. */
  readonly isConfined: boolean;
  readonly policy: SandboxPolicy;
  readonly quarantineDir: string;
}

export interface HostResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** How much of each stream was left out, where something was. */
  readonly truncatedBytes?: { readonly stdout: number; readonly stderr: number };
}

export class HostCommand implements AsyncDisposable {
  readonly takesInput: boolean;
  readonly hasTerminal: boolean;
  readonly done: Promise<HostResult>;
  readonly #stop = new AbortController();
  readonly #process = Promise.withResolvers<RunningProcess>();
  #unreadBytes = 0;

  constructor(options: HostCommandOptions) {
    this.takesInput = options.takesInput;
    this.hasTerminal = options.hasTerminal;
    // A command that never started reports it by `done`.
    this.#process.promise.catch(() => undefined);
    this.done = this.#run(options);
    this.done.catch((error: unknown) => this.#process.reject(error));
  }

  /** Settled when it runs, or is known not to. */
  async hasStarted(): Promise<boolean> {
    return this.#process.promise.then(
      () => true,
      () => false,
    );
  }

  terminate(): void {
    this.#stop.abort();
  }

  /** False: the command does not read what it was given before. */
  write(bytes: Uint8Array): boolean {
    if (this.#unreadBytes + bytes.length > MAX_UNREAD_BYTES) return false;
    this.#unreadBytes += bytes.length;
    this.#process.promise
      .then(({ process }) => process.write(bytes))
      // A command that has closed its input or ended reads no more.
      .catch(() => undefined)
      .finally(() => (this.#unreadBytes -= bytes.length));
    return true;
  }

  endInput(): void {
    this.#process.promise.then(({ process }) => process.endInput()).catch(() => undefined);
  }

  async resize(size: TerminalSize): Promise<void> {
    const { process, ...where } = await this.#process.promise;
    await resizeTerminal({ ...where, pid: process.pid, signal: this.#stop.signal }, size);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.done.catch(() => undefined);
  }

  async #run(options: HostCommandOptions): Promise<HostResult> {
    const { argv, env, timeoutMs } = options;
    const { cwd, isConfined, policy, quarantineDir } = await options.commandContext();
    const out = new Stream("stdout", options);
    const err = new Stream("stderr", options);
    const sandbox: Sandbox = isConfined ? await openSandbox(policy, { quarantineDir }) : openUnconfined(policy);
    try {
      await sandbox.ready;
      const process = await startCommand({
        sandbox,
        argv,
        cwd,
        env,
        stdin: options.takesInput ? "pipe" : "ignore",
        output: out,
        errors: err,
        signal: this.#stop.signal,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      });
      this.#process.resolve({ process, sandbox, cwd, env });
      return result(codeOf(await process.exited), out, err);
    } catch (error) {
      if (this.#stop.signal.aborted) return result(KILLED, out, err);
      const isMissing = isHeddleError(error) && error.code === "tool.failed" && options.answered === undefined;
      if (!isMissing) throw error;
      // It could not be started: that is an end of the command, not of the call.
      await err.push(Buffer.from(`${error.message}\n`));
      return result(NOT_FOUND, out, err);
    } finally {
      this.#process.reject(new Error("the command has ended"));
      await sandbox.close();
    }
  }
}

interface RunningProcess {
  readonly process: Awaited<ReturnType<typeof startCommand>>;
  readonly sandbox: Sandbox;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

type Exit = Awaited<Awaited<ReturnType<typeof startCommand>>["exited"]>;

function codeOf({ cause, exitCode, signal }: Exit): number {
  if (cause === "timeout") return TIMED_OUT;
  if (cause !== "exited") return KILLED;
  const number = signal === undefined ? undefined : new Map(Object.entries(constants.signals)).get(signal);
  return exitCode ?? 128 + (number ?? 0);
}

function result(exitCode: number, out: Stream, err: Stream): HostResult {
  const [stdout, stderr] = [out.leftOutBytes, err.leftOutBytes];
  const isWhole = stdout === 0 && stderr === 0;
  return { exitCode, stdout: out.text, stderr: err.text, ...(isWhole ? {} : { truncatedBytes: { stdout, stderr } }) };
}

/** One output of the command: kept up to its cap, or sent as it comes. */
class Stream {
  readonly #name: "stdout" | "stderr";
  readonly #options: HostCommandOptions;
  readonly #kept: Buffer[] = [];
  #roomBytes: number;
  leftOutBytes = 0;

  constructor(name: "stdout" | "stderr", options: HostCommandOptions) {
    this.#name = name;
    this.#options = options;
    this.#roomBytes = options.capBytes;
  }

  get text(): string {
    return Buffer.concat(this.#kept).toString("utf8");
  }

  async push(chunk: Buffer): Promise<void> {
    // The chunk is lent for this call alone.
    const taken = Buffer.from(chunk.subarray(0, this.#roomBytes));
    const leftOut = chunk.length - taken.length;
    const isFirstCut = leftOut > 0 && this.leftOutBytes === 0;
    this.#roomBytes -= taken.length;
    this.leftOutBytes += leftOut;
    if (this.#options.onOutput === undefined) this.#kept.push(taken);
    else if (taken.length > 0 || isFirstCut) await this.#tell(taken, isFirstCut);
  }

  async #tell(bytes: Buffer, capReached: boolean): Promise<void> {
    const { connection, onOutput, answered } = this.#options;
    await answered;
    const chunk = { stream: this.#name, deltaBase64: bytes.toString("base64"), capReached };
    if (onOutput !== undefined) connection.notify(onOutput(chunk));
    const until = performance.now() + BEHIND_MS;
    while (!connection.isIdle && !connection.isClosed && performance.now() < until) await pause(LOOK_MS);
  }
}

/** A program that answers a question for a client: it may read, not write, and has no network. */
export interface Question {
  /** Absolute, real. */
  readonly cwd: string;
  readonly argv: readonly string[];
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export async function askProgram(
  { cwd, argv, maxBytes, timeoutMs }: Question,
  { server, connection }: Call,
): Promise<HostResult> {
  const command = new HostCommand({
    connection,
    argv,
    // Git must neither take locks nor prompt, and reads no configuration but the repository's.
    env: commandEnvironment(server.host.env, { GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" }),
    takesInput: false,
    hasTerminal: false,
    capBytes: maxBytes,
    timeoutMs,
    commandContext: async () => ({
      cwd,
      isConfined: true,
      policy: { workspace: cwd, writeRoots: [], masked: [server.home, ...(server.host.masked ?? [])], network: "none" },
      quarantineDir: path.join(server.home, "quarantine", "commands"),
    }),
  });
  const forget = connection.ends.add(command);
  try {
    return await command.done;
  } finally {
    forget();
  }
}
