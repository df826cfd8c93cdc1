/** `command/exec`: one command outside any thread, in the sandbox that the client asks for. */
import { sandboxFrom, sandboxOfProfile, type CodexParams, type SandboxChoice } from "@heddle/dialects/codex-app-server";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { DEFAULT_CAP_BYTES, DEFAULT_TIMEOUT_MS, startClientCommand } from "../../host/client-command.ts";
import type { Connection } from "../../rpc/connection.ts";
import type { HostCommand } from "../../host/host-command.ts";
import { base64Bytes, invalidArgument } from "../../host/host-error.ts";
import type { TerminalSize } from "../../host/terminal.ts";
import { unknownProfile } from "../profiles.ts";
import { defaultSettings } from "../settings.ts";
import { refuse } from "../thread-facts.ts";

type ExecParams = CodexParams<"command/exec">;

/** Those with a name that their client can use. */
const named = new WeakMap<Connection, Map<string, HostCommand>>();

export const execCommand: Handler<"command/exec"> = async (params, call) => {
  check(params);
  const { server, connection } = call;
  const own = named.get(connection) ?? new Map<string, HostCommand>();
  named.set(connection, own);
  const processId = params.processId ?? undefined;
  if (processId !== undefined && own.has(processId)) {
    throw refuse(`duplicate active command/exec process id: ${JSON.stringify(processId)}`);
  }
  const isStreamed = params.tty === true || params.streamStdoutStderr === true;
  const { command, ended } = startClientCommand(call, {
    argv: params.command,
    cwd: params.cwd ?? ".",
    policy: server.settings.environment(),
    env: params.env ?? {},
    sandbox: () => sandboxChoice(params, server),
    terminal: params.tty === true ? (params.size ?? null) : undefined,
    takesInput: params.streamStdin === true,
    onOutput: isStreamed
      ? (chunk) => ({ method: "command/exec/outputDelta", params: { processId, ...chunk } })
      : undefined,
    capBytes: params.disableOutputCap === true ? undefined : (params.outputBytesCap ?? DEFAULT_CAP_BYTES),
    timeoutMs: params.disableTimeout === true ? undefined : (params.timeoutMs ?? DEFAULT_TIMEOUT_MS),
    noun: "command",
  });
  if (processId !== undefined) own.set(processId, command);
  try {
    return { result: await ended };
  } finally {
    if (processId !== undefined) own.delete(processId);
  }
};

function check(params: ExecParams): void {
  const { command, processId, tty, size, timeoutMs } = params;
  if (command.length === 0) throw refuse("command must not be empty");
  if (size !== undefined && size !== null) {
    if (tty !== true) throw invalidArgument("command/exec size requires tty: true");
    checkSize(size);
  }
  const isStreamed = tty === true || params.streamStdin === true || params.streamStdoutStderr === true;
  if (isStreamed && typeof processId !== "string") {
    throw refuse("command/exec tty or streaming requires a client-supplied processId");
  }
  if (typeof timeoutMs === "number") {
    if (params.disableTimeout === true)
      throw invalidArgument("command/exec cannot set both timeoutMs and disableTimeout");
    if (timeoutMs < 0) throw invalidArgument(`command/exec timeoutMs must be non-negative, got ${timeoutMs}`);
  }
  if (typeof params.outputBytesCap === "number" && params.disableOutputCap === true) {
    throw invalidArgument("command/exec cannot set both outputBytesCap and disableOutputCap");
  }
  if (typeof params.permissionProfile === "string" && (params.sandboxPolicy ?? undefined) !== undefined) {
    throw refuse("`permissionProfile` cannot be combined with `sandboxPolicy`");
  }
  if (command.some((word) => word.includes("\0"))) throw refuse("command must not contain NUL bytes");
}

export function checkSize({ rows, cols }: TerminalSize, method = "command/exec"): void {
  if (rows === 0 || cols === 0) throw invalidArgument(`${method} size rows and cols must be greater than 0`);
}

/** As the client asks; otherwise that of a turn with default settings, or read-only. */
async function sandboxChoice(params: ExecParams, server: ServerContext): Promise<SandboxChoice> {
  const { permissionProfile: profile, sandboxPolicy } = params;
  if (typeof profile === "string") {
    const choice = sandboxOfProfile(profile);
    if (choice === undefined) throw refuse(`invalid permission profile: ${unknownProfile(profile)}`);
    return choice;
  }
  if (sandboxPolicy !== undefined && sandboxPolicy !== null) {
    const choice = sandboxFrom(sandboxPolicy);
    if (choice === undefined) throw refuse("externalSandbox is not supported: Heddle answers only for its own sandbox");
    return choice;
  }
  return defaultSandbox(server);
}

export async function defaultSandbox({ settings }: ServerContext): Promise<SandboxChoice> {
  return (await defaultSettings(settings)) ?? { sandboxMode: "read-only" };
}

export const writeCommand: Handler<"command/exec/write"> = async (params, { connection }) => {
  const bytes = bytesToWrite(params, "command/exec/write");
  const command = requireCommand(connection, params.processId);
  if (!command.takesInput) throw refuse("stdin streaming is not enabled for this command/exec");
  writeTo(command, bytes, params.closeStdin === true);
  return { result: {} };
};

interface StdinParams {
  readonly deltaBase64?: string | null | undefined;
  readonly closeStdin?: boolean | null | undefined;
}

export function bytesToWrite({ deltaBase64, closeStdin }: StdinParams, method: string): Buffer {
  const isGiven = typeof deltaBase64 === "string";
  if (!isGiven && closeStdin !== true) throw invalidArgument(`${method} requires deltaBase64 or closeStdin`);
  const bytes = base64Bytes(deltaBase64 ?? "");
  if (!Buffer.isBuffer(bytes)) throw invalidArgument(`invalid deltaBase64: ${bytes.problem}`);
  return bytes;
}

export function writeTo(command: HostCommand, bytes: Buffer, isLast: boolean): void {
  if (!command.write(bytes)) throw refuse("the command is not reading its input; try again later");
  if (isLast) command.endInput();
}

export const terminateCommand: Handler<"command/exec/terminate"> = async ({ processId }, { connection }) => {
  requireCommand(connection, processId).terminate();
  return { result: {} };
};

export const resizeCommand: Handler<"command/exec/resize"> = async ({ processId, size }, { connection }) => {
  checkSize(size);
  await resizeOf(requireCommand(connection, processId), size);
  return { result: {} };
};

export async function resizeOf(command: HostCommand, size: TerminalSize): Promise<void> {
  if (!command.hasTerminal) throw refuse("failed to resize PTY: process is not attached to a PTY");
  await command.resize(size);
}

function requireCommand(connection: Connection, processId: string): HostCommand {
  const command = named.get(connection)?.get(processId);
  if (command === undefined) throw refuse(`no active command/exec for process id ${JSON.stringify(processId)}`);
  return command;
}
