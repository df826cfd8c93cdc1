/** The program behind a runner as it is on this machine: where it is, which version, whether a user is logged in. */
import { existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import { runChild } from "@heddle/models/vendor-programs";
import { defined, HeddleError } from "@heddle/protocol";
import type { RunnerConfig } from "../config.ts";
import type { RunnerHealth } from "../runner.ts";
import type { ReachedServer } from "./opencode-forwarder.ts";
import { ADAPTERS, KNOWN_PROGRAMS, OTHER_PROGRAM, type AgentProtocol, type KnownProgram } from "./known.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What is known of it without a look at the machine. */
export interface AgentProgram extends Omit<KnownProgram, "folders"> {
  readonly runner: string;
  readonly folders: readonly string[];
  /** Names of variables that the owner lets it have. */
  readonly env: readonly string[];
  readonly pinned: string | undefined;
  /** It is not started: it runs already. */
  readonly server?: ReachedServer | undefined;
}

/** A loaded machine takes seconds to load a program of many files. */
const VERSION_MS = 30_000;
const STATUS_MS = 10_000;

/** `runner.unsupported` for a table that does not say how its program is spoken to. */
export function programOf(runner: string, config: RunnerConfig, env: Environment): AgentProgram {
  const known = Object.hasOwn(KNOWN_PROGRAMS, runner) ? KNOWN_PROGRAMS[runner] : undefined;
  const protocol: AgentProtocol = config.protocol ?? known?.protocol ?? "acp";
  const command = config.command ?? known?.command;
  if (command === undefined) {
    const message = `runners.${runner} names no program; add command = "…" to [runners.${runner}] of config.toml`;
    throw new HeddleError("config.invalid", message);
  }
  const base = known ?? { ...OTHER_PROGRAM, ...resumedAs(protocol, command) };
  const home = env["HOME"];
  return {
    ...base,
    runner,
    protocol,
    command,
    args: config.args ?? base.otherArgs?.[protocol] ?? base.args,
    hosts: config.hosts ?? base.hosts,
    folders: config.folders ?? (home === undefined ? [] : base.folders(home, env)),
    env: [...(config.env ?? []), ...(config.env_key === undefined ? [] : [config.env_key])],
    pinned: config.version,
    ...defined({ resume: resumeOf(config) ?? base.resume }),
    ...reached(serverOf(runner, config, protocol)),
  };
}

/** As the owner says it. */
function resumeOf({ resume }: RunnerConfig): KnownProgram["resume"] {
  return resume && ((handle) => resume.map((word) => word.replaceAll("{id}", handle)));
}

/** The program with which a person continues a conversation. */
export function programByHand(program: AgentProgram): AgentProgram {
  const { byHand } = program;
  // What is pinned is the version of the adapter.
  return byHand === undefined ? program : { ...program, command: byHand, pinned: undefined };
}

/** What a person types to continue a conversation; undefined: not known. */
export function resumeCommand(program: AgentProgram, handle: string): readonly string[] | undefined {
  return program.resume && [programByHand(program).command, ...program.resume(handle)];
}

/** Continued by hand where it runs; its password is asked for there. */
function reached(server: ReachedServer | undefined): Partial<Pick<AgentProgram, "server" | "resume">> {
  if (server === undefined) return {};
  return { server, resume: (handle) => ["attach", server.url, "-s", handle] };
}

function serverOf(
  runner: string,
  { url, user, env_key: passwordName, version }: RunnerConfig,
  protocol: AgentProtocol,
): ReachedServer | undefined {
  const refuse = (why: string): HeddleError => new HeddleError("config.invalid", `[runners.${runner}]: ${why}`);
  if (url === undefined) {
    if (user === undefined && passwordName === undefined) return undefined;
    throw refuse("user and env_key are of a server; add its url, or remove them");
  }
  if (protocol !== "opencode") throw refuse(`url is for protocol = "opencode"; remove it`);
  if (version !== undefined) throw refuse("the version of a server that runs already cannot be pinned; remove version");
  return { url, user: user ?? "opencode", passwordName };
}

/** `runner.unsupported`: what runs already is in no sandbox of Heddle. */
export function requireNoSandbox({ runner, server }: AgentProgram, isOff: boolean): void {
  if (server === undefined || isOff) return;
  throw new HeddleError(
    "runner.unsupported",
    `the server at ${server.url} runs outside every sandbox; choose an envelope without one (sandbox: off), or remove url from [runners.${runner}], so that a server is started in the sandbox of each turn`,
    { details: { runner } },
  );
}

/** A program that speaks the wire of another is one of its kind, under another name; an adapter speaks for one. */
function resumedAs(protocol: AgentProtocol, command: string): Pick<KnownProgram, "resume" | "byHand" | "record"> {
  const name = basename(command);
  const adapted = Object.hasOwn(ADAPTERS, name) ? ADAPTERS[name] : undefined;
  const known = KNOWN_PROGRAMS[adapted ?? protocol];
  if (known === undefined) return {};
  const { resume, record, command: byHand } = known;
  return { ...defined({ resume, record }), ...(adapted === undefined ? {} : { byHand }) };
}

/** Its real path; undefined: it is not on the PATH. */
function findProgram(command: string, env: Environment): string | undefined {
  const places = isAbsolute(command)
    ? [command]
    : (env["PATH"] ?? "").split(delimiter).flatMap((folder) => (isAbsolute(folder) ? [join(folder, command)] : []));
  const found = places.find(isProgram);
  return found === undefined ? undefined : realpathSync(found);
}

function isProgram(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && (stat.mode & 0o111) !== 0;
}

/** `runner.missing` says how to install it. */
export function requireProgram(program: AgentProgram, env: Environment): string {
  const path = findProgram(program.command, env);
  if (path !== undefined) return path;
  throw new HeddleError(
    "runner.missing",
    `the runner ${program.runner} needs the program ${program.command}, which is not on the PATH: ${program.install}`,
    { details: { runner: program.runner } },
  );
}

const versions = new Map<string, string | undefined>();

/** Asked once for each file, as long as it stays the same. */
export async function versionOf(path: string, env: Environment, signal?: AbortSignal): Promise<string | undefined> {
  const { mtimeMs, size } = statSync(path);
  const key = `${path} ${mtimeMs} ${size}`;
  if (versions.has(key)) return versions.get(key);
  const ended = await runChild(path, ["--version"], { env, timeoutMs: VERSION_MS, signal });
  const version = ended.kind === "exited" ? /\d+(?:\.\d+)+(?:[.+-]?\w+)*/.exec(ended.stdout)?.[0] : undefined;
  if (version !== undefined) versions.set(key, version);
  return version;
}

/** `runner.wrong-version`: the owner has pinned another one. */
export async function requireVersion(program: AgentProgram, path: string, env: Environment): Promise<void> {
  const { pinned, runner } = program;
  if (pinned === undefined) return;
  const version = await versionOf(path, env);
  if (version !== undefined && isVersion(version, pinned)) return;
  throw new HeddleError(
    "runner.wrong-version",
    `runners.${runner}.version is "${pinned}", and ${path} is ${version ?? "of a version that it does not report"}; install that one, or change the pin`,
    { details: { runner } },
  );
}

function isVersion(version: string, pinned: string): boolean {
  return version === pinned || version.startsWith(`${pinned}.`);
}

/** Asks the program; its files are not opened. */
export async function examine(program: AgentProgram, env: Environment, signal: AbortSignal): Promise<RunnerHealth> {
  if (program.server !== undefined)
    return { isInstalled: true, program: program.server.url, login: "unknown", problems: [] };
  const path = findProgram(program.command, env);
  if (path === undefined) {
    const problem = { message: `${program.command} is not on the PATH`, fix: program.install };
    return { isInstalled: false, login: "unknown", problems: [problem] };
  }
  const version = await versionOf(path, env, signal);
  const login = await loginOf(program, { path, env, signal });
  const { pinned } = program;
  const isPinned = pinned === undefined || (version !== undefined && isVersion(version, pinned));
  const problems = [
    ...(version === undefined ? [{ message: `${path} --version prints no version`, fix: program.install }] : []),
    ...(isPinned ? [] : [{ message: `version ${pinned} is pinned in config.toml`, fix: program.install }]),
    ...(login === "loggedOut" ? [{ message: "not logged in", fix: program.logIn }] : []),
  ];
  return { isInstalled: true, program: path, ...(version === undefined ? {} : { version }), login, problems };
}

async function loginOf(
  { statusArgs, env: names }: AgentProgram,
  { path, env, signal }: { readonly path: string; readonly env: Environment; readonly signal: AbortSignal },
): Promise<RunnerHealth["login"]> {
  if (statusArgs === undefined) return "unknown";
  const ended = await runChild(path, statusArgs, {
    env,
    timeoutMs: STATUS_MS,
    signal,
    passedOn: [...STATUS_NAMES, ...names],
  });
  if (ended.kind !== "exited") return "unknown";
  return ended.code === 0 ? "loggedIn" : "loggedOut";
}

const STATUS_NAMES = ["CLAUDE_CONFIG_DIR"];

/** Those that exist, made where the program would make them itself: in a folder that is there. */
export function ownFolders({ folders }: AgentProgram): readonly string[] {
  return folders.flatMap((folder) => {
    if (!isAbsolute(folder)) return [];
    if (!existsSync(folder)) {
      if (!existsSync(dirname(folder))) return [];
      mkdirSync(folder, { mode: 0o700 });
    }
    return [realpathSync(folder)];
  });
}
