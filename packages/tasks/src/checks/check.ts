/** What a check gets and returns. */
import type { EventOf, LeafCheck, LeafCheckOf, TaskBaseline } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { RawPath } from "@heddle/tools/raw-path";
import type { Commands } from "./commands.ts";
import type { BeginningSetups } from "../judge/set-up.ts";
import type { Change, FrozenWork, KeptTree } from "../tree/manifest.ts";
import type { Workspace } from "./workspace.ts";

export interface CheckOptions {
  readonly folder: string;
  readonly spec: TaskSpec;
  /** Heddle's own; it does not exist for a check. */
  readonly home: string;
  readonly signal: AbortSignal;
  /** Further paths that do not exist for a check. */
  readonly masked?: readonly string[];
  /** Folders that commands see empty, but for the workspace where it lies in one. */
  readonly emptied?: readonly string[];
  /** Commands get the allow-listed part of it; absent: of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Told before a check is run, so that one that hangs is seen. */
  readonly onCheck?: (name: string, room: EventOf<"task.checking">["room"]) => Promise<void>;
  /** What the task has left of its time; no command gets more. Absent: no end. */
  readonly timeLeftMs?: () => number;
}

/** What a check is run on: the beginning, with what was picked of the work. */
export interface RoomContents {
  readonly base: KeptTree;
  /** Absent: the beginning itself. */
  readonly frozen?: FrozenWork;
  readonly picked: readonly Change[];
  /** What takes back what earlier agents left: no part of the work. Absent: it is there as they left it. */
  readonly back?: readonly Change[];
  /** Files of the beginning whose reads are to be seen. */
  readonly watched?: readonly RawPath[];
  /** Paths where a command may make something; told when it has run. */
  readonly awaited?: readonly RawPath[];
  /** All that the setup makes otherwise because of the work is there. Absent: only what the spec names. */
  readonly hasDoubted?: boolean;
  /** Shared by the rooms of one verdict; absent: the room has its own. */
  readonly setups?: BeginningSetups;
  /** Absolute, without links: where the tree was taken from, and where the room appears. */
  readonly workspace: string;
}

export interface CheckContext {
  readonly files: Workspace;
  readonly commands: Commands;
  readonly baseline: TaskBaseline;
  readonly room: RoomContents;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** Throwing means `error`, with the message of what was thrown. */
export interface Finding {
  readonly outcome: "passed" | "failed" | "error";
  readonly message: string;
  readonly output?: string;
  readonly sha256?: string;
  readonly tests?: TestCounts;
  readonly boxes?: number;
  /** There was nothing to judge, so `not` must not pass: an agent could delete the file. */
  readonly isMoot?: true;
  /** Files of the work that it looked at without reading them. */
  readonly looked?: readonly string[];
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
