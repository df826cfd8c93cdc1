/**
 * A Sandbox is opened once per thread and policy, and commands enter it; closing it kills everything inside, `setsid`
 * grandchildren too. `openSandbox` refuses with `sandbox.unavailable` when the host cannot give one: there is no
 * fallback.
 */
import type { SandboxHolds, SandboxLevel, Network } from "@heddle/protocol";
import type { SandboxLimits } from "./limits.ts";

export interface SandboxPolicy {
  /** Absolute, existing. */
  readonly workspace: string;
  /** Absolute folders that may be written; empty = read-only. */
  readonly writeRoots: readonly string[];
  /** Absolute paths that may be read besides; everything else does not exist inside. Absent: all of the host is there. */
  readonly readRoots?: readonly string[] | undefined;
  /** Absolute paths that look empty inside: Heddle's own home above all. */
  readonly masked: readonly string[];
  /** Absolute folders that stay visible, read-only, inside a folder that is private inside, such as /tmp. */
  readonly visible?: readonly string[];
  readonly network: Network;
  /** Absent: the defaults, cut to what the host has left. */
  readonly limits?: SandboxLimits | undefined;
}

/** A command is spawned, or it already runs in a standby. */
export type SandboxedCommand = CommandToSpawn | CommandInside;

interface CommandCarriers {
  /** How many pid namespaces lie between Heddle and the command; processes further out only lead to it. */
  readonly pidDepth: number;
  /** When it exits its whole tree has ended; otherwise leftovers have to be searched for. */
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
  /** The outermost process that belongs to this command alone. */
  readonly pid: number;
  /** Both its outputs; the caller closes it. */
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
  /** Its input is empty and both its outputs go to one stream, so that a standby can run it. */
  readonly isPlain?: boolean;
}

/** A protected path that appeared or changed although the mounts could not prevent it. */
export interface ProtectedPathViolation {
  readonly path: string;
  /** Absent: it was only reported, or could not be moved. */
  readonly quarantinedTo?: string;
}

export interface SweepOptions {
  /** No process is left inside, so this state is final: contents are compared too. */
  readonly isLast?: boolean;
}

export interface Sandbox extends AsyncDisposable {
  readonly level: SandboxLevel;
  readonly policy: SandboxPolicy;
  /**
   * Settles when commands can enter, with what the kernel limits them to. A host refuses when the sandbox is opened; a
   * rejection here (`sandbox.failed`) is a defect of the later mounts, and ends the turn.
   */
  readonly ready: Promise<SandboxHolds>;
  enter(argv: readonly string[], options: EnterOptions): Promise<SandboxedCommand>;
  /**
   * Only saves time: enters the sandbox ahead of a command that is coming (`call`) or likely (`pause`).
   * Callers may ignore it, and a sandbox may do nothing.
   */
  standBy(sign?: "call" | "pause"): void;
  /** What exists now is the owner's: the owner allowed a call outside the sandbox that made it. */
  accept(): Promise<void>;
  /**
   * Finds protected paths made or changed since the last sweep, moves them to quarantine and restores what was there.
   */
  sweep(options?: SweepOptions): Promise<readonly ProtectedPathViolation[]>;
  /** Ends everything inside, then sweeps once more. Disposing does the same, without a result. */
  close(): Promise<readonly ProtectedPathViolation[]>;
}
