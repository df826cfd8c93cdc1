/**
 * A command that a client runs outside any thread, in the sandbox that was chosen for it: on record, among at most so many of
 * its connection, and ended with it.
 */
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { ClientAct, EnvironmentPolicy } from "@heddle/protocol";
import type { SandboxChoice } from "@heddle/dialects/codex-app-server";
import { envelopeFor, heddleFolders } from "@heddle/tools";
import type { Call, ServerContext } from "../rpc/call.ts";
import type { Connection } from "../rpc/connection.ts";
import { RPC, RpcError } from "../rpc/peer.ts";
import { refuse } from "../codex/thread-facts.ts";
import { beginAct, type BegunAct } from "./client-acts.ts";
import { HostCommand, type CommandContext, type HostCommandOptions, type HostResult } from "./host-command.ts";
import { DEFAULT_SIZE, inTerminal, type TerminalSize } from "./terminal.ts";

export const DEFAULT_CAP_BYTES = 1024 * 1024;
/** What one answer can carry; what is streamed has no end. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
export const DEFAULT_TIMEOUT_MS = 10_000;
/** What a timer takes. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const MAX_RUNNING = 64;

const running = new WeakMap<Connection, Set<HostCommand>>();

export interface ClientCommandOptions extends Pick<HostCommandOptions, "takesInput" | "onOutput" | "answered"> {
  readonly argv: readonly string[];
  /** Relative to the folder of the server. */
  readonly cwd: string;
  /** What it sees of the environment beside that. */
  readonly policy: EnvironmentPolicy;
  /** What the client names it names on purpose; null takes a variable away. */
  readonly env: Readonly<Record<string, string | null>>;
  readonly sandbox: () => Promise<SandboxChoice>;
  /** undefined: without a terminal; null: with one of the usual size. */
  readonly terminal: TerminalSize | null | undefined;
  /** undefined: as much as can be carried. */
  readonly capBytes: number | undefined;
  readonly timeoutMs: number | undefined;
  /** For the message when it cannot be started: `failed to spawn command`. */
  readonly noun: string;
}

export interface ClientCommand {
  readonly command: HostCommand;
  /** Settled when its end is on record. */
  readonly ended: Promise<HostResult>;
}

export function startClientCommand(call: Call, options: ClientCommandOptions): ClientCommand {
  const { connection, server } = call;
  const own = running.get(connection) ?? new Set<HostCommand>();
  running.set(connection, own);
  if (own.size >= MAX_RUNNING) throw refuse(`a connection may run ${MAX_RUNNING} commands at once`);
  let recorded: BegunAct | undefined;
  const command = new HostCommand({
    ...runOptions(options, call),
    commandContext: async () => {
      const cwd = await folder(options, server);
      const context = contextOf(await options.sandbox(), { argv: options.argv, cwd, server });
      recorded = await beginAct(call, { act: actOf(options, context) });
      return context;
    },
  });
  own.add(command);
  const forget = connection.ends.add(command);
  const ended = async (): Promise<HostResult> => {
    try {
      const result = await command.done.catch(async (error: unknown) => {
        await recorded?.failed(error);
        throw error;
      });
      const { exitCode, stdout, stderr } = result;
      await recorded?.settled({ outcome: exitCode === 0 ? "ok" : "failed", exitCode, output: stdout + stderr });
      return result;
    } finally {
      own.delete(command);
      forget();
    }
  };
  return { command, ended: ended() };
}

function actOf({ argv, env }: ClientCommandOptions, { cwd, isConfined, policy }: CommandContext): ClientAct {
  return { kind: "command", argv: [...argv], cwd, envNames: Object.keys(env), isConfined, network: policy.network };
}

function runOptions(
  options: ClientCommandOptions,
  { server, connection }: Call,
): Omit<HostCommandOptions, "commandContext"> {
  const { argv, terminal, takesInput, onOutput, answered, timeoutMs } = options;
  const hasTerminal = terminal !== undefined;
  const env = environment(options, server);
  const most = onOutput === undefined ? MAX_KEPT_BYTES : Number.MAX_SAFE_INTEGER;
  return {
    connection,
    ...(hasTerminal ? inTerminal(argv, env, terminal ?? DEFAULT_SIZE) : { argv, env }),
    takesInput: hasTerminal || takesInput,
    hasTerminal,
    onOutput,
    answered,
    capBytes: Math.min(options.capBytes ?? most, most),
    timeoutMs: timeoutMs === undefined ? undefined : Math.min(timeoutMs, MAX_TIMEOUT_MS),
  };
}

function environment(
  { env: asked, policy }: Pick<ClientCommandOptions, "env" | "policy">,
  { heddle }: ServerContext,
): Record<string, string> {
  const base = Object.entries(heddle.environmentOf(policy)).filter(([name]) => !Object.hasOwn(asked, name));
  const given = Object.entries(asked).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  const wrong = given.find(([name, value]) => name === "" || /[=\0]/.test(name) || value.includes("\0"));
  if (wrong !== undefined) throw refuse(`env cannot hold the variable ${JSON.stringify(wrong[0])}`);
  return Object.fromEntries([...base, ...given]);
}

async function folder(options: ClientCommandOptions, { cwd, home }: ServerContext): Promise<string> {
  const wanted = path.resolve(cwd, options.cwd);
  const real = await realpath(wanted).catch(() => undefined);
  const isFolder = real !== undefined && (await stat(real).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder) throw cannotSpawn(options.noun);
  const ownHome = await realpath(home).catch(() => home);
  if (`${real}/`.startsWith(`${ownHome}/`)) throw refuse(`${wanted} is not available here`);
  return real;
}

export function cannotSpawn(noun: string): RpcError {
  return new RpcError(RPC.internal, `failed to spawn ${noun}: No such file or directory (os error 2)`);
}

function contextOf(
  choice: SandboxChoice,
  { argv, cwd, server }: { readonly argv: readonly string[]; readonly cwd: string; readonly server: ServerContext },
): CommandContext {
  const { writeRoots, masked, network, sandbox } = envelopeFor({
    mode: choice.sandboxMode,
    workspace: cwd,
    writableRoots: (choice.writableRoots ?? []).map((root) => path.resolve(cwd, root)),
    networkAccess: choice.networkAccess ?? false,
    networkHosts: choice.networkHosts,
    approval: "never",
    masked: [...heddleFolders(server.home), ...(server.host.masked ?? [])],
  });
  if (sandbox === "off") server.log(`a client runs ${argv[0]} with full access`);
  return {
    cwd,
    policy: { workspace: cwd, writeRoots, masked, network },
    isConfined: sandbox !== "off",
    quarantineDir: path.join(server.home, "quarantine", "commands"),
  };
}
