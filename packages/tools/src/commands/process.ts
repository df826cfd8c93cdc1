/**
 * One command that Heddle started and owns: from spawn to the end of its whole tree. Nothing it started outlives it,
 * `setsid` grandchildren included, and `exited` resolves even when one of them keeps the output open.
 *
 *   running --exit--> draining (output ends, at most 2 s) --> exited
 *   running --abort | timeout | kill--> stopping (TERM, 2 s, KILL) --exit--> draining --> exited
 */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import { access } from "node:fs/promises";
import { Socket, type OnReadOpts, type SocketConstructorOpts } from "node:net";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { clockMs, HeddleError, reasonOf } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { onlyStandardStreams } from "./inherited-descriptors.ts";
import type { CappedOutput } from "./output.ts";
import { openPipe } from "./pipes.ts";
import { interruptTree, killTree, MARKER_VARIABLE, markerOf, terminateTree, type TreeOptions } from "./process-tree.ts";
import type { CommandEnd, CommandInside, CommandToSpawn, Sandbox } from "../sandbox/sandbox.ts";

/** Between SIGTERM and SIGKILL. */
const TERMINATE_MS = 2000;
/** Only a process stuck in the kernel needs longer, and waiting does not help. */
const KILL_MS = 2000;
/** How long output of its children is read after the command has ended. */
const DRAIN_MS = 2000;
/** The capacity of a pipe. */
const READ_BYTES = 64 * 1024;

export interface StartCommandOptions {
  readonly sandbox: Sandbox;
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Complete; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** `ignore` is an empty input: a command that reads gets an end of file. */
  readonly stdin: "ignore" | "pipe";
  readonly output: OutputSink;
  /** For a program that speaks a protocol on its output. Absent: errors go to `output`, in order. */
  readonly errors?: OutputSink;
  /** The output was closed, by the end of the command or by a command that keeps running. */
  readonly onOutputEnd?: () => void;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
  /** Whom it works for: where no sandbox ends it with Heddle, `endLeftProcesses` finds what is left by that. */
  readonly owner?: string | undefined;
}

/** The chunk is only valid during the call. A promise stops reading until it settles. */
export type OutputSink = Pick<CappedOutput, "push">;

export interface ProcessExit {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly cause: "exited" | "aborted" | "timeout" | "killed";
  readonly durationMs: number;
}

/**
 * Node starts the threads of its pool with the first call that needs one, and aborts when it cannot. So they are there
 * before a command can take the last that the host gives.
 */
let threadPool: Promise<void> | undefined;

export async function startCommand(options: StartCommandOptions): Promise<OwnedProcess> {
  const { sandbox, argv, cwd, env, signal, timeoutMs } = options;
  if (signal.aborted) throw new HeddleError("tool.cancelled", "cancelled before the command was started");
  await (threadPool ??= access("/"));
  const marker = sandbox.level === "none" ? markerOf(options.owner) : undefined;
  const isPlain = options.stdin === "ignore" && options.errors === undefined;
  const command = await sandbox.enter(argv, { cwd, env, isPlain });
  const started =
    command.kind === "inside"
      ? adopt(command, options)
      : await spawnWithPipes(marker === undefined ? command : withMarker(command, marker), options);
  const owned = new OwnedProcess({
    ...started,
    endsWithTree: command.endsWithTree,
    tree: { pid: started.pid, pidDepth: command.pidDepth, ...(marker !== undefined && { marker }) },
  });
  failpoint("process.after-spawn");
  owned.stopOn(signal, timeoutMs);
  return owned;
}

function withMarker(command: CommandToSpawn, marker: string): CommandToSpawn {
  return { ...command, env: { ...command.env, [MARKER_VARIABLE]: marker } };
}

interface Started {
  readonly pid: number;
  readonly ended: Promise<CommandEnd>;
  readonly input: Writable | undefined;
  readonly outputs: readonly OutputReader[];
}

interface OutputReader {
  /** Everything has been pushed, or the reader was closed. */
  readonly drained: Promise<void>;
  close(): void;
}

/** It already runs. */
function adopt({ pid, ended, outputFd }: CommandInside, { output, onOutputEnd }: StartCommandOptions): Started {
  const reader = readPipe(outputFd, output);
  if (onOutputEnd !== undefined) reader.drained.then(onOutputEnd, onOutputEnd);
  return { pid, ended, input: undefined, outputs: [reader] };
}

async function spawnWithPipes(
  command: CommandToSpawn,
  { stdin, output: sink, errors: errorSink, onOutputEnd }: StartCommandOptions,
): Promise<Started> {
  const hasRealPipes = process.platform === "linux";
  const output = hasRealPipes ? await openPipe("read") : undefined;
  const errors = hasRealPipes && errorSink !== undefined ? await openPipe("read") : undefined;
  const input = hasRealPipes && stdin === "pipe" ? await openPipe("write") : undefined;
  const out = output?.writeFd ?? "pipe";
  let child: ChildProcess;
  try {
    child = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      stdio: onlyStandardStreams(input?.readFd ?? stdin, out, errors?.writeFd ?? out),
      // A ^C at Heddle's terminal must not reach it.
      detached: true,
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
  } catch (cause) {
    for (const fd of [output?.readFd, errors?.readFd, input?.writeFd]) if (fd !== undefined) closeSync(fd);
    const reason = reasonOf(cause);
    throw new HeddleError("tool.failed", `cannot start ${command.file} in ${command.cwd}: ${reason}`, { cause });
  } finally {
    for (const fd of [output?.writeFd, errors?.writeFd, input?.readFd]) if (fd !== undefined) closeSync(fd);
  }
  const ended = new Promise<CommandEnd>((resolve) => {
    child.once("exit", (exitCode, signal) => {
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined });
    });
  });
  const outputs: OutputReader[] = [];
  if (output !== undefined) outputs.push(readPipe(output.readFd, sink));
  else if (child.stdout !== null) outputs.push(readStream(child.stdout, sink));
  if (onOutputEnd !== undefined) outputs[0]?.drained.then(onOutputEnd, onOutputEnd);
  if (errors !== undefined) outputs.push(readPipe(errors.readFd, errorSink ?? sink));
  else if (output === undefined && child.stderr !== null) outputs.push(readStream(child.stderr, errorSink ?? sink));
  const stream = input && new Socket({ fd: input.writeFd, readable: false, writable: true });
  return { pid: child.pid ?? 0, ended, input: stream ?? child.stdin ?? undefined, outputs };
}

/** One buffer for all of it, so that a flood makes no garbage. */
function readPipe(fd: number, output: OutputSink): OutputReader {
  const resume = (): void => {
    socket.resume();
  };
  const options: SocketConstructorOpts & { onread: OnReadOpts } = {
    fd,
    readable: true,
    writable: false,
    onread: {
      buffer: Buffer.allocUnsafeSlow(READ_BYTES),
      callback: (length, buffer) => {
        const behind = output.push(Buffer.from(buffer.buffer, buffer.byteOffset, length));
        if (behind === undefined) return true;
        behind.then(resume, resume);
        return false;
      },
    },
  };
  const socket = new Socket(options);
  const drained = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
    // `close` follows.
    socket.once("error", () => undefined);
  });
  socket.resume();
  return { drained, close: () => socket.destroy() };
}

function readStream(stream: Readable, output: OutputSink): OutputReader {
  const drained = (async () => {
    try {
      for await (const chunk of stream) await output.push(chunk as Buffer);
    } catch {
      // Closed when the time for draining is over.
    }
  })();
  return { drained, close: () => stream.destroy() };
}

interface RunningParts extends Started {
  readonly endsWithTree: boolean;
  readonly tree: TreeOptions;
}

export class OwnedProcess implements AsyncDisposable {
  readonly pid: number;
  /** Never rejects. When it resolves the tree has ended and all output has been pushed. */
  readonly exited: Promise<ProcessExit>;
  readonly #parts: RunningParts;
  readonly #startedAt = clockMs();
  #cause: ProcessExit["cause"] = "exited";
  #isRunning = true;
  #stopping: Promise<void> | undefined;
  #release: () => void = () => undefined;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    this.pid = parts.pid;
    // The command may close its input at any time; `write` reports it.
    parts.input?.on("error", () => undefined);
    this.exited = this.#finish();
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  stopOn(signal: AbortSignal, timeoutMs: number | undefined): void {
    const stop = (cause: ProcessExit["cause"]): void => {
      this.#stop(cause).catch(() => undefined);
    };
    const onAbort = (): void => stop("aborted");
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop("timeout"), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#release = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    if (signal.aborted) onAbort();
  }

  async #finish(): Promise<ProcessExit> {
    const { exitCode, signal } = await this.#parts.ended;
    const durationMs = clockMs() - this.#startedAt;
    this.#isRunning = false;
    this.#release();
    const giveUp = new AbortController();
    const drained = Promise.all(this.#parts.outputs.map((reader) => reader.drained));
    await Promise.race([drained, sleep(DRAIN_MS, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
    giveUp.abort();
    if (!this.#parts.endsWithTree) await killTree(this.#parts.tree, KILL_MS);
    for (const reader of this.#parts.outputs) reader.close();
    this.#parts.input?.destroy();
    await drained;
    return { exitCode, signal, cause: this.#cause, durationMs };
  }

  #stop(cause: ProcessExit["cause"]): Promise<void> {
    if (this.#isRunning && this.#stopping === undefined) {
      this.#cause = cause;
      this.#stopping = this.#terminate();
    }
    return this.#stopping ?? Promise.resolve();
  }

  async #terminate(): Promise<void> {
    const { tree, ended } = this.#parts;
    terminateTree(tree);
    const giveUp = new AbortController();
    const isGone = await Promise.race([
      ended.then(() => true),
      sleep(TERMINATE_MS, false, { signal: giveUp.signal }).catch(() => false),
    ]);
    giveUp.abort();
    if (!isGone) await killTree(tree, KILL_MS);
  }

  write(text: string | Uint8Array): Promise<void> {
    const { input } = this.#parts;
    return new Promise((resolve, reject) => {
      if (input === undefined) {
        reject(new HeddleError("tool.failed", "this command was started without an input"));
        return;
      }
      input.write(text, (cause) => {
        if (cause) reject(new HeddleError("tool.failed", "the command does not take input any more", { cause }));
        else resolve();
      });
    });
  }

  endInput(): void {
    this.#parts.input?.end();
  }

  /** Like Ctrl-C: the command may ignore it. */
  interrupt(): void {
    if (this.#isRunning) interruptTree(this.#parts.tree);
  }

  /** Ends the whole tree and waits. */
  async kill(): Promise<void> {
    await this.#stop("killed");
    await this.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
