/**
 * A work order, whole: what a spec file says once its short forms are read and its paths are absolute. The same shape is
 * stored with the task, shown by the doors and described to editors. Closed: a key that is not here is a mistake.
 */
import { z } from "zod";
import { ApprovalPolicy, SandboxMode } from "./envelope.ts";
import { TaskCheck } from "./task-checks.ts";

const text = z.string().min(1);
const ms = z.number().int().positive();

export const TaskStep = z.strictObject({ title: text, acceptance: z.array(text).default([]) });

/** When a task begins by itself. Each time is a task of its own; `catchUp` says what happens to times that were missed. */
export const TaskSchedule = z.strictObject({
  /** Exactly one of `cron`, `everyMs` and `at`. */
  cron: text.optional(),
  timeZone: text.default("UTC"),
  everyMs: ms.optional(),
  /** ISO 8601. */
  at: text.optional(),
  catchUp: z.enum(["skip", "once", "all"]).default("skip"),
});
export type TaskSchedule = z.infer<typeof TaskSchedule>;

/** What a task may take, all attempts together; time it was paused or waited for its turn is not counted. */
export const TaskBudget = z.strictObject({
  timeMs: ms.default(4 * 3_600_000),
  turns: z.number().int().positive().default(20),
  tokens: z.number().int().positive().default(5_000_000),
  costUsd: z.number().positive().optional(),
  onReached: z.enum(["pause", "fail"]).default("pause"),
});
export type TaskBudget = z.infer<typeof TaskBudget>;

/** What went wrong, in classes that a retry can name. */
export const FailureClass = z.enum(["provider", "rate-limit", "infrastructure", "crash", "turn", "rejected"]);
export type FailureClass = z.infer<typeof FailureClass>;

export const TaskRetries = z.strictObject({
  /** Attempts after the first. */
  max: z.number().int().nonnegative().default(2),
  on: z.array(FailureClass).default(["provider", "rate-limit", "infrastructure", "crash"]),
  backoffMs: ms.default(30_000),
});

export const TaskWorktree = z.strictObject({
  /** Where it starts from; the commit that is checked out when absent. */
  base: text.optional(),
  /** Runs in it, in the sandbox, before the first prompt. */
  setup: text.optional(),
  /** How verified work comes back; the checks are run again on the result. */
  merge: z.enum(["none", "branch", "patch", "commit"]).default("branch"),
});
export type TaskWorktree = z.infer<typeof TaskWorktree>;

/** How the clean room of the checks gets what the work needs to be run, such as the dependencies of a lockfile that changed. */
export const TaskSetup = z.strictObject({
  /** One program with its arguments, or a line for the shell. */
  run: z.union([text, z.array(text).min(1)]),
  network: z.boolean().default(false),
  timeoutMs: z.number().int().positive().max(3_600_000).default(600_000),
});
export type TaskSetup = z.infer<typeof TaskSetup>;

export const StallAction = z.enum(["report", "eof", "kill-child", "interrupt", "retry"]);
export type StallAction = z.infer<typeof StallAction>;

export const TaskSpec = z.strictObject({
  name: text,
  /** Absolute. */
  workspace: text,
  goal: text,
  steps: z.array(TaskStep).default([]),
  /** What a person would check: given to the agent, not used for the verdict. */
  acceptance: z.array(text).default([]),
  checks: z.array(TaskCheck).default([]),
  /**
   * Globs, relative to the workspace, of what the agent is hired to change: only these files come from it when the checks
   * are run, and only these are merged. `!glob` takes out. Absent: everything it changed, and the verdict names what it
   * rests on.
   */
  deliver: z.array(text).min(1).optional(),
  /** When the user's folder is touched: as the agent writes, or only with what was verified. Absent: live, in a worktree on-verified. */
  apply: z.enum(["live", "on-verified"]).optional(),
  /** Runs in the clean room before the checks. */
  setup: TaskSetup.optional(),
  /** Globs, relative to the workspace, of what the agent must leave as it is. `!glob` takes out. */
  protect: z.array(text).default([]),
  /** Tests may not be part of what a verdict rests on unless `deliver` says so, and no fewer may run than before. */
  protectTests: z.boolean().default(true),
  /** Read-only judgement of another model on work whose checks passed. It can only add a rejection. */
  secondOpinion: z
    .strictObject({
      provider: text.optional(),
      model: text,
      /** One that cannot be had counts as a rejection. */
      required: z.boolean().default(false),
    })
    .optional(),
  runner: text.default("embedded"),
  provider: text.optional(),
  model: text.optional(),
  effort: text.optional(),
  sandbox: SandboxMode.default("workspace-write"),
  network: z.boolean().default(false),
  approval: ApprovalPolicy.default("never"),
  schedule: TaskSchedule.optional(),
  /** Names or ids of tasks that must be verified (or, without checks, claimed) first. */
  dependsOn: z.array(text).default([]),
  /** Higher first. */
  priority: z.number().int().default(0),
  /** No other task runs in the same folder meanwhile. */
  exclusive: z.boolean().default(true),
  /** In a worktree of its own; absent: in place. */
  worktree: TaskWorktree.optional(),
  budget: TaskBudget.prefault({}),
  retries: TaskRetries.prefault({}),
  /** Turns the harness may start by itself after the first of an attempt, in all attempts together. */
  maxNudges: z.number().int().nonnegative().default(3),
  stall: z.strictObject({ afterMs: ms.default(120_000), action: StallAction.default("report") }).prefault({}),
  /** Names of sinks; absent: all. */
  notify: z.array(text).optional(),
  labels: z.array(text).default([]),
  /** Run in the sandbox before the task is archived; a failure keeps it. */
  beforeArchive: z.array(text).default([]),
  /** An existing thread to continue. */
  thread: text.optional(),
  /** With `thread`: what runs there is stopped first. */
  abort: z.boolean().default(false),
});
export type TaskSpec = z.infer<typeof TaskSpec>;
export type TaskSpecInput = z.input<typeof TaskSpec>;
