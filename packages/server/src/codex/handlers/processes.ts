/** `process/*`: commands outside any thread that are answered when they run; their end is a notification. */
import { reasonOf } from "@heddle/protocol";
import type { CodexParams } from "@heddle/dialects/codex-app-server";
import type { Handler } from "../../rpc/call.ts";
import { cannotSpawn, DEFAULT_CAP_BYTES, DEFAULT_TIMEOUT_MS, startClientCommand } from "../../host/client-command.ts";
import type { HostCommand, HostResult } from "../../host/host-command.ts";
import { absolutePath } from "../../host/file-rules.ts";
import { invalidArgument } from "../../host/host-error.ts";
import type { Connection } from "../../rpc/connection.ts";
import { RpcError } from "../../rpc/peer.ts";
import { refuse } from "../thread-facts.ts";
import { bytesToWrite, checkSize, defaultSandbox, resizeOf, writeTo } from "./command.ts";

type SpawnParams = CodexParams<"process/spawn">;

const running = new WeakMap<Connection, Map<string, HostCommand>>();

export const spawnProcess: Handler<"process/spawn"> = async (params, call) => {
  check(params);
  const { server, connection } = call;
  const { processHandle, size, outputBytesCap: cap, timeoutMs } = params;
  const own = running.get(connection) ?? new Map<string, HostCommand>();
  running.set(connection, own);
  if (own.has(processHandle)) throw refuse(`duplicate active process handle: ${JSON.stringify(processHandle)}`);
  const isStreamed = params.tty === true || params.streamStdoutStderr === true;
  const answered = Promise.withResolvers<void>();
  const { command, ended } = startClientCommand(call, {
    argv: params.command,
    cwd: absolutePath(params.cwd),
    // As in the original, the policy for commands of turns does not count here.
    policy: {},
    env: params.env ?? {},
    sandbox: () => defaultSandbox(server),
    terminal: params.tty === true ? (size ?? null) : undefined,
    takesInput: params.streamStdin === true,
    onOutput: isStreamed
      ? (chunk) => ({ method: "process/outputDelta", params: { processHandle, ...chunk } })
      : undefined,
    answered: answered.promise,
    // Absent is the default, null is without one.
    capBytes: cap === undefined ? DEFAULT_CAP_BYTES : (cap ?? undefined),
    timeoutMs: timeoutMs === undefined ? DEFAULT_TIMEOUT_MS : (timeoutMs ?? undefined),
    noun: "process",
  });
  own.set(processHandle, command);
  const forget = (): void => void own.delete(processHandle);
  ended.then(forget, forget);
  if (!(await command.hasStarted())) {
    const why = await ended.then(
      () => undefined,
      (error: unknown) => error,
    );
    throw why instanceof RpcError ? why : cannotSpawn("process");
  }
  return {
    result: {},
    after() {
      answered.resolve();
      ended.then(
        (end) => connection.notify({ method: "process/exited", params: { processHandle, ...endOf(end) } }),
        (error: unknown) => server.log(`the end of a process is not known: ${reasonOf(error)}`),
      );
    },
  };
};

function endOf({ exitCode, stdout, stderr, truncatedBytes }: HostResult): Readonly<Record<string, unknown>> {
  return {
    exitCode,
    outputDrainTimedOut: false,
    stdout,
    stdoutCapReached: (truncatedBytes?.stdout ?? 0) > 0,
    stderr,
    stderrCapReached: (truncatedBytes?.stderr ?? 0) > 0,
  };
}

function check({ command, processHandle, tty, size, timeoutMs }: SpawnParams): void {
  if (command.length === 0) throw refuse("command must not be empty");
  if (processHandle === "") throw refuse("processHandle must not be empty");
  if (size !== undefined && size !== null) {
    if (tty !== true) throw invalidArgument("process/spawn size requires tty: true");
    checkSize(size, "process");
  }
  if (typeof timeoutMs === "number" && timeoutMs < 0) {
    throw invalidArgument(`process/spawn timeoutMs must be non-negative, got ${timeoutMs}`);
  }
  if (command.some((word) => word.includes("\0"))) throw refuse("command must not contain NUL bytes");
}

export const writeProcess: Handler<"process/writeStdin"> = async (params, { connection }) => {
  const bytes = bytesToWrite(params, "process/writeStdin");
  const command = requireProcess(connection, params.processHandle);
  if (!command.takesInput) throw refuse("stdin streaming is not enabled for this process");
  writeTo(command, bytes, params.closeStdin === true);
  return { result: {} };
};

export const killProcess: Handler<"process/kill"> = async ({ processHandle }, { connection }) => {
  requireProcess(connection, processHandle).terminate();
  return { result: {} };
};

export const resizeProcess: Handler<"process/resizePty"> = async ({ processHandle, size }, { connection }) => {
  checkSize(size, "process");
  await resizeOf(requireProcess(connection, processHandle), size);
  return { result: {} };
};

function requireProcess(connection: Connection, processHandle: string): HostCommand {
  const command = running.get(connection)?.get(processHandle);
  if (command === undefined) throw refuse(`no active process for process handle ${JSON.stringify(processHandle)}`);
  return command;
}
