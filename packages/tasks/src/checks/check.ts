/** What one kind of check is given and what it answers; every file beside this one carries out one kind. */
import type { LeafCheck, LeafCheckOf, TaskBaseline } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { Commands } from "./commands.ts";
import type { Workspace } from "./workspace.ts";

/** Where checks are run, and for what. */
export interface CheckPlace {
  /** Absolute: where the work is done. */
  readonly folder: string;
  readonly spec: TaskSpec;
  /** Heddle's own; it does not exist for a check. */
  readonly home: string;
  readonly signal: AbortSignal;
  /** Further paths that do not exist for a check. */
  readonly masked?: readonly string[];
  /** Commands get the allow-listed part of it; absent: of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

export interface CheckContext {
  readonly files: Workspace;
  readonly commands: Commands;
  readonly baseline: TaskBaseline;
  /** What the baseline and the result call this check. */
  readonly name: string;
  readonly signal: AbortSignal;
}

/** Throwing is answering `error`, with the words of what was thrown. */
export interface Finding {
  readonly outcome: "passed" | "failed" | "error";
  readonly message: string;
  readonly output?: string;
  readonly sha256?: string;
  readonly tests?: TestCounts;
  readonly boxes?: number;
  /** There was nothing to judge, so that `not` makes no pass of this failure: an agent could delete what must not be said. */
  readonly isMoot?: true;
}

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export type RunLeaf<K extends LeafCheck["kind"]> = (check: LeafCheckOf<K>, context: CheckContext) => Promise<Finding>;

export function passed(message: string, more: Partial<Finding> = {}): Finding {
  return { outcome: "passed", message, ...more };
}

export function failed(message: string, more: Partial<Finding> = {}): Finding {
  return { outcome: "failed", message, ...more };
}

export function cannot(message: string, more: Partial<Finding> = {}): Finding {
  return { outcome: "error", message, ...more };
}
