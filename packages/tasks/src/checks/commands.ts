/**
 * Commands in sandboxes: they may write the workspace and a private temporary folder, have no network unless allowed, and
 * see neither keys nor Heddle's home. Closing ends their processes. Checks run in a room, a throw-away tree at the path of
 * the workspace; setups and hooks in the folder itself.
 */
import { createHash } from "node:crypto";
import { delimiter, isAbsolute, join, normalize } from "node:path";
import { HeddleError, isHeddleError, toHeddleError } from "@heddle/protocol";
import {
  CappedOutput,
  commandEnvironment,
  heddleFolders,
  openSandbox,
  openUnconfined,
  startCommand,
  type Sandbox,
  type SandboxPolicy,
} from "@heddle/tools";
import type { RawPath } from "@heddle/tools/raw-path";
import { openRoom, type Room, type RoomLayer } from "@heddle/tools/room";
import type { CheckOptions } from "./check.ts";
import { relativePath } from "./relative-path.ts";
import { realFolder, type Workspace } from "./workspace.ts";

/** The part of the output that is judged. A run that prints more has to write a report. */
const JUDGED_BYTES = 4 * 1024 * 1024;
/** With less free space, a command may have failed because of that. */
const FULL_BYTES = 1024 * 1024;
/** A result keeps the beginning, which shows what was run, and the end, which shows how it went. */
const KEPT_HEAD_CHARS = 2_000;
const KEPT_TAIL_CHARS = 6_000;

export interface Command {
  readonly run: string | readonly string[];
  readonly cwd: string;
  readonly timeoutMs: number;
  /** All, none, or only these hosts. */
  readonly network: boolean | readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Only stdout is judged; errors are kept apart. */
  readonly onlyStdout?: true;
  /** What is kept of its output; `isWhole` is false when there was more. */
  readonly maxBytes?: number;
}

export interface Ended {
  readonly exitCode: number;
  /** stdout and stderr; the middle is missing when it is not whole. */
  readonly text: string;
  readonly isWhole: boolean;
  readonly output: string;
  readonly sha256: string;
}

/** A command that hangs, was killed or could not be started: there is no exit code to judge. */
export interface Broken {
  readonly message: string;
  readonly output: string;
  readonly sha256: string;
}

export interface Commands extends AsyncDisposable {
  run(command: Command): Promise<Ended | Broken>;
}

export interface RoomCommands extends Commands {
  readonly kind: Room["kind"] | undefined;
  /** Opens the room of a command ahead of `run`. */
  open(command: Pick<Command, "network">): Promise<void>;
  /** The path of what the commands left; undefined: none was run. */
  tree(): Promise<string | undefined>;
  /** Entries of the layer that were read since the last call; undefined: this host cannot tell. */
  reads(): Promise<ReadonlySet<RawPath> | undefined>;
}

export interface RoomOptions {
  /** Trees that are shown, the uppermost first. */
  readonly lower: readonly string[];
  readonly layer: RoomLayer;
  /** Where written files are kept. */
  readonly keepUpper?: string;
  /** What may be written, where it is kept in memory; absent: a part of what is free. */
  readonly maxBytes?: number;
}

export function openRoomCommands(checkOptions: CheckOptions, files: Workspace, options: RoomOptions): RoomCommands {
  const mayBeUnconfined = checkOptions.spec.sandbox === "danger-full-access";
  let kind: Room["kind"] | undefined;
  const rooms = byNetwork(async (network) => {
    const policy = policyOf(checkOptions, files.root, network);
    const room = await openRoom({ ...options, policy, mayBeUnconfined }).catch(noRoom);
    kind = room.kind;
    return room;
  });
  return {
    get kind() {
      return kind;
    },
    async open(command) {
      await rooms.of(command);
    },
    async run(command) {
      const entry = await files.entry(command.cwd);
      if (entry?.kind !== "directory")
        throw new HeddleError(
          "path.invalid",
          `${command.cwd} is not a folder of the workspace, so no command runs there`,
        );
      const room = await rooms.of(command);
      const end = await runIn(room.sandbox, command, { checkOptions, root: room.root });
      const isFull = (isBroken(end) || end.exitCode !== 0) && (await room.freeBytes()) < FULL_BYTES;
      if (!isFull) return end;
      return { message: "the room of the check has no space left", output: end.output, sha256: end.sha256 };
    },
    async tree() {
      return (await rooms.opened())[0]?.tree;
    },
    async reads() {
      const read = new Set<RawPath>();
      for (const room of await rooms.opened()) {
        const found = await room.reads();
        if (found === undefined) return undefined;
        for (const path of found) read.add(path);
      }
      return read;
    },
    [Symbol.asyncDispose]: () => rooms[Symbol.asyncDispose](),
  };
}

type Network = SandboxPolicy["network"];

/** One for each kind of network; none is opened before something is run in it. */
function byNetwork<T extends AsyncDisposable>(openFor: (network: Network) => Promise<T>) {
  const known = new Map<string, Promise<T>>();
  const opened = async (): Promise<readonly T[]> =>
    (await Promise.allSettled(known.values())).flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  return {
    opened,
    of(command: Pick<Command, "network">): Promise<T> {
      const network = networkOf(command);
      const one = known.get(String(network)) ?? openFor(network);
      known.set(String(network), one);
      return one;
    },
    async [Symbol.asyncDispose]() {
      for (const one of await opened()) await one[Symbol.asyncDispose]();
    },
  };
}

function networkOf({ network }: Pick<Command, "network">): Network {
  if (typeof network !== "boolean") return [...network];
  return network ? "all" : "none";
}

/** Unless the work is too large or cannot be placed, this is the fault of the host, and nothing is judged. */
function noRoom(error: unknown): never {
  const { code, message: why } = toHeddleError(error);
  if (code === "limit.reached" || code === "path.invalid") throw error;
  const message = `no clean room for the checks could be opened: ${why}`;
  throw new HeddleError("sandbox.unavailable", message, { cause: error });
}

export function isNoRoom(error: unknown): boolean {
  return isHeddleError(error) && error.code === "sandbox.unavailable";
}

export function isBroken(end: Ended | Broken): end is Broken {
  return !("exitCode" in end);
}

/** In the folder itself, for setups and clean-ups. Throws `workspace.missing`. */
export async function openFolderCommands(checkOptions: CheckOptions): Promise<Commands> {
  const root = await realFolder(checkOptions.folder);
  const sandboxes = byNetwork((network) => openFor(checkOptions, policyOf(checkOptions, root, network)));
  return {
    run: async (command) => runIn(await sandboxes.of(command), command, { checkOptions, root }),
    [Symbol.asyncDispose]: () => sandboxes[Symbol.asyncDispose](),
  };
}

function policyOf(checkOptions: CheckOptions, root: string, network: Network): SandboxPolicy {
  const { home, masked = [], emptied = [] } = checkOptions;
  return { workspace: root, writeRoots: [root], masked: [...heddleFolders(home), ...masked, ...emptied], network };
}

async function openFor(checkOptions: CheckOptions, policy: SandboxPolicy): Promise<Sandbox> {
  try {
    return await openSandbox(policy, { quarantineDir: join(checkOptions.home, "quarantine", "checks") });
  } catch (error) {
    // The owner let the agent of this task run without a sandbox; on a host that has none its checks may too.
    const isOut = checkOptions.spec.sandbox === "danger-full-access";
    if (isOut && isHeddleError(error) && error.code === "sandbox.unavailable") return openUnconfined(policy);
    throw error;
  }
}

/** Without it test runners watch for changes, ask questions and write new snapshots. */
const SURROUNDINGS = { CI: "true", NO_COLOR: "1" };

/** Go needs a cache that it can write, and the home folder is not writable. */
function cacheOf({ spec }: CheckOptions): Readonly<Record<string, string>> {
  return spec.sandbox === "danger-full-access" ? {} : { GOCACHE: "/tmp/go-build" };
}

async function runIn(
  sandbox: Sandbox,
  command: Command,
  { checkOptions, root }: { readonly checkOptions: CheckOptions; readonly root: string },
): Promise<Ended | Broken> {
  const half = (command.maxBytes ?? JUDGED_BYTES) / 2;
  const leftMs = checkOptions.timeLeftMs?.() ?? Number.POSITIVE_INFINITY;
  if (leftMs <= 0) return { message: "the time of the task is used up (budget.time)", output: "", sha256: "" };
  const timeoutMs = Math.min(command.timeoutMs, leftMs);
  const judged = new CappedOutput({ headBytes: half, tailBytes: half });
  const hash = createHash("sha256");
  const errors = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: typeof command.run === "string" ? ["/bin/sh", "-c", command.run] : command.run,
    cwd: join(root, relativePath(command.cwd)),
    env: withoutOwnPrograms(
      commandEnvironment(checkOptions.env ?? process.env, {
        ...SURROUNDINGS,
        ...cacheOf(checkOptions),
        ...command.env,
      }),
      root,
    ),
    stdin: "ignore",
    output: {
      push(chunk) {
        hash.update(chunk);
        return judged.push(chunk);
      },
    },
    ...(command.onlyStdout === true ? { errors } : {}),
    signal: checkOptions.signal,
    timeoutMs,
  });
  const exit = await owned.exited;
  await judged.close();
  await errors.close();
  checkOptions.signal.throwIfAborted();
  const { text, truncatedBytes } = judged.snapshot();
  const more = { output: endsOf(`${text}${errors.snapshot().text}`), sha256: hash.digest("hex") };
  if (exit.cause === "timeout") {
    const why = timeoutMs < command.timeoutMs ? ", when the time of the task was used up (budget.time)," : "";
    return {
      message: `it had not ended after ${timeoutMs} ms${why} and was stopped, with all it had started`,
      ...more,
    };
  }
  if (exit.exitCode === undefined) return { message: `it was ended by ${exit.signal ?? "a signal"}`, ...more };
  return { exitCode: exit.exitCode, text, isWhole: truncatedBytes === 0, ...more };
}

/** A file that the agent can write must not replace a program that a check names. */
function withoutOwnPrograms(env: Readonly<Record<string, string>>, root: string): Record<string, string> {
  const isOutside = (folder: string): boolean =>
    isAbsolute(folder) && normalize(folder) !== root && !normalize(folder).startsWith(`${root}/`);
  return { ...env, PATH: (env["PATH"] ?? "").split(delimiter).filter(isOutside).join(delimiter) };
}

/** How a shell reports that its command was killed. */
export function killedBy({ exitCode }: Ended): string | undefined {
  return exitCode > 128 && exitCode <= 128 + 31 ? `it was ended by signal ${exitCode - 128}` : undefined;
}

/** Keeps every result small. */
export function endsOf(text: string): string {
  if (text.length <= KEPT_HEAD_CHARS + KEPT_TAIL_CHARS) return text.toWellFormed();
  const left = text.length - KEPT_HEAD_CHARS - KEPT_TAIL_CHARS;
  const [head, tail] = [text.slice(0, KEPT_HEAD_CHARS), text.slice(-KEPT_TAIL_CHARS)];
  return `${head}\n[... ${left} characters left out ...]\n${tail}`.toWellFormed();
}
