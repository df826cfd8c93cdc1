/** `command/exec`: one command outside any thread, in the sandbox that the client asks for. */
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { ClientAct } from "@heddle/protocol";
import { sandboxFrom, sandboxOfProfile, type CodexParams, type SandboxChoice } from "@heddle/dialects/codex-app-server";
import { commandEnvironment, envelopeFor, heddleFolders } from "@heddle/tools";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { beginAct, type BegunAct } from "../../host/client-acts.ts";
import type { Connection } from "../../rpc/connection.ts";
import { HostCommand, type CommandContext, type HostCommandOptions } from "../../host/host-command.ts";
import { base64Bytes, invalidArgument } from "../../host/host-error.ts";
import { RPC, RpcError } from "../../rpc/peer.ts";
import { DEFAULT_SIZE, inTerminal } from "../../host/terminal.ts";
import { unknownProfile } from "../profiles.ts";
import { defaultSettings } from "../settings.ts";
import { refuse } from "../thread-facts.ts";

const DEFAULT_CAP_BYTES = 1024 * 1024;
/** What one answer can carry; what is streamed has no end. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 10_000;
/** What a timer takes. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const MAX_RUNNING = 64;

type ExecParams = CodexParams<"command/exec">;

const running = new WeakMap<Connection, Map<string, HostCommand>>();
let unnamed = 0;

export const execCommand: Handler<"command/exec"> = async (params, call) => {
  check(params);
  const { server, connection } = call;
  const own = running.get(connection) ?? new Map<string, HostCommand>();
  running.set(connection, own);
  // A key that no client can name.
  const key = typeof params.processId === "string" ? `named ${params.processId}` : `unnamed ${unnamed++}`;
  if (own.has(key)) throw refuse(`duplicate active command/exec process id: ${JSON.stringify(params.processId)}`);
  if (own.size >= MAX_RUNNING) throw refuse(`a connection may run ${MAX_RUNNING} commands at once`);
  let recorded: BegunAct | undefined;
  const command = new HostCommand({
    connection,
    ...runOptions(params, server),
    commandContext: async () => {
      const commandContext = await contextOf(params, { server, cwd: await folder(params.cwd ?? ".", server) });
      recorded = await beginAct(call, { act: actOf(params, commandContext) });
      return commandContext;
    },
  });
  own.set(key, command);
  const forget = connection.ends.add(command);
  try {
    const result = await command.done.catch(async (error: unknown) => {
      await recorded?.failed(error);
      throw error;
    });
    const { exitCode, stdout, stderr } = result;
    await recorded?.settled({ outcome: exitCode === 0 ? "ok" : "failed", exitCode, output: stdout + stderr });
    return { result };
  } finally {
    own.delete(key);
    forget();
  }
};

function actOf({ command, env }: ExecParams, { cwd, isConfined, policy }: CommandContext): ClientAct {
  const envNames = Object.keys(env ?? {});
  return { kind: "command", argv: [...command], cwd, envNames, isConfined, network: policy.network };
}

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

function checkSize({ rows, cols }: { readonly rows: number; readonly cols: number }): void {
  if (rows === 0 || cols === 0) throw invalidArgument("command/exec size rows and cols must be greater than 0");
}

function runOptions(
  params: ExecParams,
  server: ServerContext,
): Omit<HostCommandOptions, "connection" | "commandContext"> {
  const hasTerminal = params.tty === true;
  const isStreamed = hasTerminal || params.streamStdoutStderr === true;
  const env = environment(params.env ?? {}, server);
  const most = isStreamed ? Number.MAX_SAFE_INTEGER : MAX_KEPT_BYTES;
  const asked = params.disableOutputCap === true ? most : (params.outputBytesCap ?? DEFAULT_CAP_BYTES);
  const timeoutMs = Math.min(params.timeoutMs ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS);
  return {
    processId: params.processId ?? undefined,
    ...(hasTerminal ? inTerminal(params.command, env, params.size ?? DEFAULT_SIZE) : { argv: params.command, env }),
    takesInput: hasTerminal || params.streamStdin === true,
    hasTerminal,
    isStreamed,
    capBytes: Math.min(asked, most),
    timeoutMs: params.disableTimeout === true ? undefined : timeoutMs,
  };
}

/** What the client names it names on purpose; null takes a variable away. */
function environment(asked: Readonly<Record<string, string | null>>, { host }: ServerContext): Record<string, string> {
  const base = Object.entries(commandEnvironment(host.env)).filter(([name]) => !Object.hasOwn(asked, name));
  const given = Object.entries(asked).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  const wrong = given.find(([name, value]) => name === "" || /[=\0]/.test(name) || value.includes("\0"));
  if (wrong !== undefined) throw refuse(`env cannot hold the variable ${JSON.stringify(wrong[0])}`);
  return Object.fromEntries([...base, ...given]);
}

async function folder(asked: string, { cwd, home }: ServerContext): Promise<string> {
  const wanted = path.resolve(cwd, asked);
  const real = await realpath(wanted).catch(() => undefined);
  const isFolder = real !== undefined && (await stat(real).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder) throw new RpcError(RPC.internal, "failed to spawn command: No such file or directory (os error 2)");
  const ownHome = await realpath(home).catch(() => home);
  if (`${real}/`.startsWith(`${ownHome}/`)) throw refuse(`${wanted} is not available here`);
  return real;
}

async function contextOf(
  params: ExecParams,
  { server, cwd }: { readonly server: ServerContext; readonly cwd: string },
): Promise<CommandContext> {
  const choice = await sandboxChoice(params, server);
  const { writeRoots, masked, network, sandbox } = envelopeFor({
    mode: choice.sandboxMode,
    workspace: cwd,
    writableRoots: (choice.writableRoots ?? []).map((root) => path.resolve(cwd, root)),
    networkAccess: choice.networkAccess ?? false,
    approval: "never",
    masked: [...heddleFolders(server.home), ...(server.host.masked ?? [])],
  });
  if (sandbox === "off") server.log(`a client runs ${params.command[0]} with full access`);
  return {
    cwd,
    policy: { workspace: cwd, writeRoots, masked, network },
    isConfined: sandbox !== "off",
    quarantineDir: path.join(server.home, "quarantine", "commands"),
  };
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
  return (await defaultSettings(server.settings)) ?? { sandboxMode: "read-only" };
}

export const writeCommand: Handler<"command/exec/write"> = async (params, { connection }) => {
  const { processId, deltaBase64, closeStdin } = params;
  const isGiven = typeof deltaBase64 === "string";
  if (!isGiven && closeStdin !== true) {
    throw invalidArgument("command/exec/write requires deltaBase64 or closeStdin");
  }
  const bytes = base64Bytes(deltaBase64 ?? "");
  if (!Buffer.isBuffer(bytes)) throw invalidArgument(`invalid deltaBase64: ${bytes.problem}`);
  const command = requireCommand(connection, processId);
  if (!command.takesInput) throw refuse("stdin streaming is not enabled for this command/exec");
  if (!command.write(bytes)) throw refuse("the command is not reading its input; try again later");
  if (closeStdin === true) command.endInput();
  return { result: {} };
};

export const terminateCommand: Handler<"command/exec/terminate"> = async ({ processId }, { connection }) => {
  requireCommand(connection, processId).terminate();
  return { result: {} };
};

export const resizeCommand: Handler<"command/exec/resize"> = async ({ processId, size }, { connection }) => {
  checkSize(size);
  const command = requireCommand(connection, processId);
  if (!command.hasTerminal) throw refuse("failed to resize PTY: process is not attached to a PTY");
  await command.resize(size);
  return { result: {} };
};

function requireCommand(connection: Connection, processId: string): HostCommand {
  const command = running.get(connection)?.get(`named ${processId}`);
  if (command === undefined) throw refuse(`no active command/exec for process id ${JSON.stringify(processId)}`);
  return command;
}
