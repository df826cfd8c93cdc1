/**
 * One call that starts a command or continues with an open one: waits for its end, its time limit or the end of the
 * turn, and prepares the output for the model and the item. A stopped command keeps its output.
 */
import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { clockMs, HeddleError, type Failure } from "@heddle/protocol";
import { absolutePath } from "../calls/call-path.ts";
import { fitText } from "../calls/fit-text.ts";
import { statInside } from "../files/paths.ts";
import type { OpenCommand } from "./process-table.ts";
import type { ProcessExit } from "./process.ts";
import type { ToolContext } from "../calls/tool.ts";

/** One loud command must not push the task out of the context. */
const MAX_OUTPUT_BYTES = 32 * 1024;
/** The kernel's limit for one argument. */
export const MAX_COMMAND_BYTES = 120 * 1024;
const BYTES_A_TOKEN = 4;

export interface ShellStart {
  readonly command: string;
  readonly isLogin: boolean;
  readonly workdir: string | undefined;
  readonly stdin: "ignore" | "pipe";
  readonly timeoutMs: number | undefined;
}

export async function startShell(start: ShellStart, context: ToolContext): Promise<OpenCommand> {
  const cwd = start.workdir === undefined ? context.cwd : absolutePath(start.workdir, context.cwd);
  // The workspace is the owner's choice; a folder of the model must be one it may see.
  const isThere =
    start.workdir === undefined
      ? statSync(cwd, { throwIfNoEntry: false })?.isDirectory()
      : (await statInside(cwd, context.envelope))?.kind === "directory";
  if (isThere !== true) throw new HeddleError("tool.failed", `the folder ${cwd} does not exist`);
  return context.state.processes.start({
    command: start.command,
    argv: [shellFile(), start.isLogin ? "-lc" : "-c", start.command],
    cwd,
    env: context.state.environment,
    stdin: start.stdin,
    sandbox: context.sandbox,
    onText: (delta) => context.stream(delta),
    timeoutMs: start.timeoutMs,
  });
}

export function workdirOf(workdir: string | undefined): readonly { path: string; access: "read" }[] {
  return workdir === undefined ? [] : [{ path: workdir, access: "read" }];
}

export interface Waiting {
  readonly waitMs: number;
  readonly maxOutputTokens: number | undefined;
  /** Output from before the wait. */
  readonly waited?: TakenText;
}

type TakenText = ReturnType<OpenCommand["take"]>;

export interface CommandReport {
  readonly state: "ended" | "running" | "stopped";
  readonly exit: ProcessExit | undefined;
  /** For the model, with its heading. */
  readonly text: string;
  /** Printed during this call. */
  readonly output: string;
  readonly truncatedBytes: number;
  readonly blob: string | undefined;
  readonly blobError: string | undefined;
  readonly durationMs: number;
  readonly failure: Failure | undefined;
}

export async function awaitCommand(
  command: OpenCommand,
  waiting: Waiting,
  context: ToolContext,
): Promise<CommandReport> {
  const startedAt = clockMs();
  using _wait = command.await(context.itemId);
  let exit = await firstOf(command.ended, waiting.waitMs, context.signal);
  const isStopped = exit === undefined && context.signal.aborted;
  if (isStopped) {
    await command.kill();
    exit = await command.ended;
  }
  const taken = joined(waiting.waited, command.take());
  if (exit !== undefined) context.state.processes.forget(command.id);
  const durationMs = Math.round(clockMs() - startedAt);
  const maxBytes = Math.min(MAX_OUTPUT_BYTES, (waiting.maxOutputTokens ?? Infinity) * BYTES_A_TOKEN);
  const ending = exit === undefined ? `Process running with session ID ${command.id}` : describeExit(exit);
  const heading = [
    `Chunk ID: ${randomBytes(3).toString("hex")}`,
    `Wall time: ${(durationMs / 1000).toFixed(4)} seconds`,
    ending,
    ...(taken.truncatedBytes > 0 ? [`Output left out: ${taken.truncatedBytes} bytes`] : []),
    "Output:",
  ].join("\n");
  const { blob, blobError } = command.snapshot();
  return {
    state: isStopped ? "stopped" : exit === undefined ? "running" : "ended",
    exit,
    text: `${heading}\n${fitText(taken.text, maxBytes)}`,
    output: taken.text,
    truncatedBytes: taken.truncatedBytes,
    blob,
    blobError,
    durationMs,
    failure: exit === undefined ? undefined : failureOf(exit),
  };
}

function joined(first: TakenText | undefined, second: TakenText): TakenText {
  if (first === undefined) return second;
  return { text: first.text + second.text, truncatedBytes: first.truncatedBytes + second.truncatedBytes };
}

/** undefined when the time is up or the turn ends first. */
async function firstOf(
  ended: Promise<ProcessExit>,
  waitMs: number,
  signal: AbortSignal,
): Promise<ProcessExit | undefined> {
  if (signal.aborted) return undefined;
  const other = Promise.withResolvers<undefined>();
  const stop = (): void => other.resolve(undefined);
  const timer = setTimeout(stop, waitMs);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([ended, other.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

export function describeExit(exit: ProcessExit): string {
  switch (exit.cause) {
    case "timeout":
      return `Process stopped at its time limit after ${Math.round(exit.durationMs)} ms`;
    case "aborted":
      return "Process stopped with the turn";
    case "killed":
      return "Process was killed before it ended";
    case "exited":
      return exit.exitCode === undefined
        ? `Process ended by signal ${exit.signal ?? "unknown"}`
        : `Process exited with code ${exit.exitCode}`;
  }
}

/** undefined: success. */
export function failureOf(exit: ProcessExit): Failure | undefined {
  if (exit.cause === "exited" && exit.exitCode === 0) return undefined;
  const details = {
    ...(exit.exitCode === undefined ? {} : { exitCode: exit.exitCode }),
    ...(exit.signal === undefined ? {} : { signal: exit.signal }),
  };
  return { code: exit.cause === "timeout" ? "tool.timeout" : "tool.failed", message: describeExit(exit), details };
}

const SHELLS = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];

/** The sandbox shows the host's programs. */
function shellFile(): string {
  return SHELLS.find((file) => existsSync(file)) ?? "/bin/sh";
}
