/**
 * Commands of checks, in sandboxes of their own: they may write the workspace and their private temporary folder, reach no
 * network unless the check says so, and see neither keys nor Heddle's home. Closing ends whatever is left of them.
 */
import { createHash } from "node:crypto";
import { delimiter, isAbsolute, join, normalize } from "node:path";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import {
  CappedOutput,
  commandEnvironment,
  openSandbox,
  openUnconfined,
  startCommand,
  type Sandbox,
  type SandboxPolicy,
} from "@heddle/tools";
import type { CheckPlace } from "./check.ts";
import { relativePath } from "./relative-path.ts";
import type { Workspace } from "./workspace.ts";

/** What an output is judged by. A run that says more has to write a report. */
const JUDGED_BYTES = 4 * 1024 * 1024;
/** What a result keeps: the beginning says what was run, the end says how it went. */
const KEPT_HEAD_CHARS = 2_000;
const KEPT_TAIL_CHARS = 6_000;

export interface Command {
  /** One program with its arguments, or a line for the shell. */
  readonly run: string | readonly string[];
  /** Relative to the workspace. */
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly network: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Judged alone; errors are then kept apart. */
  readonly onlyStdout?: true;
}

export interface Ended {
  readonly exitCode: number;
  /** What it printed, errors included; the middle is missing when it is not whole. */
  readonly text: string;
  readonly isWhole: boolean;
  /** For the result: beginning and end. */
  readonly output: string;
  /** Of everything it printed. */
  readonly sha256: string;
}

/** A command that hangs, was killed or could not be started has no end that could be judged. */
export interface Broken {
  readonly message: string;
  readonly output: string;
  readonly sha256: string;
}

export interface Commands extends AsyncDisposable {
  run(command: Command): Promise<Ended | Broken>;
}

export function isBroken(end: Ended | Broken): end is Broken {
  return !("exitCode" in end);
}

export function openCommands(place: CheckPlace, files: Workspace): Commands {
  const open = new Map<SandboxPolicy["network"], Promise<Sandbox>>();
  const sandboxFor = (network: SandboxPolicy["network"]): Promise<Sandbox> => {
    const known = open.get(network) ?? openFor(place, files.root, network);
    open.set(network, known);
    return known;
  };
  return {
    async run(command) {
      const entry = await files.entry(command.cwd);
      if (entry?.kind !== "directory") {
        throw new HeddleError("path.invalid", `${command.cwd} is no folder of the workspace to run a command in`);
      }
      const sandbox = await sandboxFor(command.network ? "all" : "none");
      return await runIn(sandbox, command, { place, root: files.root });
    },
    async [Symbol.asyncDispose]() {
      for (const sandbox of await Promise.allSettled(open.values())) {
        if (sandbox.status === "fulfilled") await sandbox.value[Symbol.asyncDispose]();
      }
    },
  };
}

async function openFor(place: CheckPlace, root: string, network: SandboxPolicy["network"]): Promise<Sandbox> {
  const policy: SandboxPolicy = {
    workspace: root,
    writeRoots: [root],
    masked: [place.home, ...(place.masked ?? [])],
    network,
  };
  try {
    return await openSandbox(policy, { quarantineDir: join(place.home, "quarantine", "checks") });
  } catch (error) {
    // The owner let the agent of this task out; where the host has no wall, its checks go the same way.
    const isOut = place.spec.sandbox === "danger-full-access";
    if (isOut && isHeddleError(error) && error.code === "sandbox.unavailable") return openUnconfined(policy);
    throw error;
  }
}

async function runIn(
  sandbox: Sandbox,
  command: Command,
  { place, root }: { readonly place: CheckPlace; readonly root: string },
): Promise<Ended | Broken> {
  const half = JUDGED_BYTES / 2;
  const judged = new CappedOutput({ headBytes: half, tailBytes: half });
  const hash = createHash("sha256");
  const errors = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: typeof command.run === "string" ? ["/bin/sh", "-c", command.run] : command.run,
    cwd: join(root, relativePath(command.cwd)),
    // Test runners watch for changes, ask and write new snapshots unless they are told that nobody is there.
    env: withoutOwnPrograms(
      commandEnvironment(place.env ?? process.env, { CI: "true", NO_COLOR: "1", ...command.env }),
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
    signal: place.signal,
    timeoutMs: command.timeoutMs,
  });
  const exit = await owned.exited;
  await judged.close();
  await errors.close();
  place.signal.throwIfAborted();
  const { text, truncatedBytes } = judged.snapshot();
  const more = { output: endsOf(`${text}${errors.snapshot().text}`), sha256: hash.digest("hex") };
  if (exit.cause === "timeout") {
    return {
      message: `it had not ended after ${command.timeoutMs} ms and was stopped, with all it had started`,
      ...more,
    };
  }
  if (exit.exitCode === undefined) return { message: `it was ended by ${exit.signal ?? "a signal"}`, ...more };
  return { exitCode: exit.exitCode, text, isWhole: truncatedBytes === 0, ...more };
}

/** What the agent can write must not stand for a program that a check names. */
function withoutOwnPrograms(env: Readonly<Record<string, string>>, root: string): Record<string, string> {
  const isOutside = (folder: string): boolean =>
    isAbsolute(folder) && normalize(folder) !== root && !normalize(folder).startsWith(`${root}/`);
  return { ...env, PATH: (env["PATH"] ?? "").split(delimiter).filter(isOutside).join(delimiter) };
}

/** How a shell tells that what it ran was killed: nobody chose such an end, unless a check expects it. */
export function killedBy({ exitCode }: Ended): string | undefined {
  return exitCode > 128 && exitCode <= 128 + 31 ? `it was ended by signal ${exitCode - 128}` : undefined;
}

/** Whatever else is wrong, a result stays small. */
export function endsOf(text: string): string {
  if (text.length <= KEPT_HEAD_CHARS + KEPT_TAIL_CHARS) return text.toWellFormed();
  const left = text.length - KEPT_HEAD_CHARS - KEPT_TAIL_CHARS;
  const [head, tail] = [text.slice(0, KEPT_HEAD_CHARS), text.slice(-KEPT_TAIL_CHARS)];
  return `${head}\n[... ${left} characters left out ...]\n${tail}`.toWellFormed();
}

/** Throws what a broken command is, for checks that have nothing more to say about it. */
export function whole(end: Ended | Broken, what: string): Ended {
  if (isBroken(end)) throw new HeddleError("tool.failed", `${what}: ${end.message}`);
  if (!end.isWhole) throw new HeddleError("limit.reached", `${what} printed more than ${JUDGED_BYTES} bytes`);
  return end;
}
