/**
 * A terminal for a command: util-linux's `script` opens it, inside the same sandbox as the command, so that nothing native has
 * to be loaded and nothing of the host's terminals is reached. Its size is set from inside too.
 */
import { readFile, readlink } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { HeddleError } from "@heddle/protocol";
import { startCommand, type Sandbox } from "@heddle/tools";

export interface TerminalSize {
  readonly rows: number;
  readonly cols: number;
}

export const DEFAULT_SIZE: TerminalSize = { rows: 24, cols: 80 };

/** Every sandbox has terminals of its own; the first one is the command's. */
const FIRST_INSIDE = "/dev/pts/0";
const RESIZE_MS = 5_000;
const LOOK_MS = 50;
const MAX_LOOKS = 40;

/** The command as an argument of `script`, which gets a `SHELL` of its own; the command keeps its `SHELL`. */
export function inTerminal(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  { rows, cols }: TerminalSize,
): { readonly argv: readonly string[]; readonly env: Record<string, string> } {
  const shell = env["SHELL"] === undefined ? "unset SHELL" : `SHELL=${quoted(env["SHELL"])}; export SHELL`;
  const command = argv.map(quoted).join(" ");
  const line = `stty rows ${rows} cols ${cols} 2>/dev/null; ${shell}; exec ${command}`;
  return {
    argv: ["script", "-qefc", line, "/dev/null"],
    env: { TERM: "xterm-256color", ...env, SHELL: "/bin/sh" },
  };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

export interface RunningTerminal {
  readonly sandbox: Sandbox;
  /** Of `script`. */
  readonly pid: number;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The kernel signals the new size to the command. */
export async function resizeTerminal(terminal: RunningTerminal, size: TerminalSize): Promise<void> {
  // The terminal exists a moment after the command was started.
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    if (await trySize(terminal, size)) return;
    await pause(LOOK_MS, undefined, { signal: terminal.signal });
  }
  throw new HeddleError("tool.failed", "failed to resize PTY: there is no terminal of this command");
}

async function trySize(terminal: RunningTerminal, { rows, cols }: TerminalSize): Promise<boolean> {
  const { sandbox, pid, cwd, env, signal } = terminal;
  const device = sandbox.level === "none" ? await deviceBelow(pid) : FIRST_INSIDE;
  if (device === undefined) return false;
  await using setting = await startCommand({
    sandbox,
    argv: ["stty", "-F", device, "rows", String(rows), "cols", String(cols)],
    cwd,
    env,
    stdin: "ignore",
    output: { push: () => undefined },
    signal,
    timeoutMs: RESIZE_MS,
  });
  return (await setting.exited).exitCode === 0;
}

/** What the child of `script` has for its input. */
async function deviceBelow(pid: number): Promise<string | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const [child] = children.split(" ").filter((word) => word !== "");
  if (child === undefined) return undefined;
  const device = await readlink(`/proc/${child}/fd/0`).catch(() => "");
  return /^\/dev\/pts\/\d+$/.test(device) ? device : undefined;
}
