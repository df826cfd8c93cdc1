/**
 * The kernel layer. A Sandbox is opened once per thread and policy and commands enter it; closing it kills everything
 * inside, `setsid` grandchildren too. `openSandbox` refuses with `sandbox.unavailable` when the host cannot give one:
 * nothing here ever falls back by itself.
 */
import type { SandboxHolds, SandboxLevel } from "@heddle/protocol";
import type { SandboxLimits } from "./limits.ts";

export interface SandboxPolicy {
  /** Absolute, existing. Working folder of the thread. */
  readonly workspace: string;
  /** Absolute folders that may be written; empty = read-only. */
  readonly writeRoots: readonly string[];
  /** Absolute paths that must look empty inside: Heddle's own home above all. */
  readonly masked: readonly string[];
  /** Absolute folders that stay visible, read-only, although they lie in a place that is private inside, such as /tmp. */
  readonly visible?: readonly string[];
  readonly network: "none" | "all";
  /** Absent: the defaults, cut to what the host has left. */
  readonly limits?: SandboxLimits | undefined;
}

/** How a command is started inside: by spawning what leads there, or it runs already, because somebody stood by for it. */
export type SandboxedCommand = CommandToSpawn | CommandInside;

interface CommandCarriers {
  /** How many pid namespaces lie between Heddle and the command; processes further out only carry it. */
  readonly pidDepth: number;
  /** When it exits its whole tree is gone; otherwise what is left has to be looked for. */
  readonly endsWithTree: boolean;
}

export interface CommandToSpawn extends CommandCarriers {
  readonly kind: "spawn";
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface CommandInside extends CommandCarriers {
  readonly kind: "inside";
  /** The outermost process that carries it and nothing else. */
  readonly pid: number;
  /** Both its outputs; whoever started it closes this. */
  readonly outputFd: number;
  readonly ended: Promise<CommandEnd>;
}

export interface CommandEnd {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

export interface EnterOptions {
  readonly cwd: string;
  /** Complete; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** Its input is empty and both its outputs go the same way, so that a standby can run it. */
  readonly isPlain?: boolean;
}

/** A protected path that appeared or changed although the mounts could not prevent it. */
export interface ProtectedPathViolation {
  readonly path: string;
  /** Where it is now. Absent: it was only looked at, or it could not be moved. */
  readonly quarantinedTo?: string;
}

export interface SweepOptions {
  /** Nobody is left inside: the state that is found now is the one that stays, so more is looked at than change times. */
  readonly isLast?: boolean;
}

export interface Sandbox extends AsyncDisposable {
  readonly level: SandboxLevel;
  readonly policy: SandboxPolicy;
  /**
   * Settles when commands can enter, with what the kernel holds them to. What a host refuses is refused when the sandbox is opened; a rejection here
   * (`sandbox.failed`) is a defect found while the last mounts were made, and a turn must not go on after it.
   */
  readonly ready: Promise<SandboxHolds>;
  enter(argv: readonly string[], options: EnterOptions): Promise<SandboxedCommand>;
  /**
   * A command comes (`call`), or there is time and one may come (`pause`): what can be done for it before it is known is done
   * now, beside this process. Nothing is opened for what only may come.
   */
  standBy(sign?: "call" | "pause"): void;
  /** What is there now is the owner's, like what was there when it was opened: the owner let a call out that made it. */
  accept(): Promise<void>;
  /** Looks for protected paths made or changed since the last sweep, moves them out of the way and puts back what was there. */
  sweep(options?: SweepOptions): Promise<readonly ProtectedPathViolation[]>;
  /** Ends everything inside, then sweeps once more with nobody left to race. Disposing does the same, silently. */
  close(): Promise<readonly ProtectedPathViolation[]>;
}
