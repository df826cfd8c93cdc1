/**
 * A work order, whole: what a spec file says once its short forms are read and its paths are absolute. The same shape is
 * stored with the task, shown by the doors and described to editors. Closed: a key that is not here is a mistake.
 */
import { z } from "zod";
import { ContestKeep, ContestMeasure, ContestPick, MAX_CONTESTANTS, TaskAgent, TaskScore } from "./contest-shapes.ts";
import { ENVELOPE_EXAMPLES } from "../envelopes/built-in-envelopes.ts";
import { ApprovalPolicy, SandboxMode } from "../envelopes/envelope.ts";
import { TaskCheck, TaskNetwork } from "./task-checks.ts";

const text = z.string().min(1);
const envelopeName = text.meta(ENVELOPE_EXAMPLES);
/** A word for what a worker has. */
export const WorkerLabel = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,31}$/, "must be lower-case letters, digits, ., _ or -");
/** More needs than this make a queue that no worker looks at. */
const MAX_NEEDS = 4;
const ms = z.number().int().positive();

export const TaskStep = z.strictObject({ title: text, acceptance: z.array(text).default([]) });

/** When a task starts by itself. Each time is a task of its own; `catchUp` decides about missed times. */
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

/** Of a task whose owner names no limit. */
export const DEFAULT_TOKENS = 5_000_000;

/** Limits of a task, all attempts together; pauses and waiting do not count. */
export const TaskBudget = z.strictObject({
  timeMs: ms.default(4 * 3_600_000),
  turns: z.number().int().positive().default(20),
  tokens: z.number().int().positive().default(DEFAULT_TOKENS),
  costUsd: z.number().positive().optional(),
  onReached: z.enum(["pause", "fail"]).default("pause"),
});
export type TaskBudget = z.infer<typeof TaskBudget>;

/** Classes of failures that a retry can name. */
export const FailureClass = z.enum(["provider", "rate-limit", "infrastructure", "crash", "turn", "rejected"]);
export type FailureClass = z.infer<typeof FailureClass>;

export const TaskRetries = z.strictObject({
  /** Attempts after the first. */
  max: z.number().int().nonnegative().default(2),
  on: z.array(FailureClass).default(["provider", "rate-limit", "infrastructure", "crash"]),
  backoffMs: ms.default(30_000),
});

export const TaskWorktree = z.strictObject({
  /** The commit to start from; the one that is checked out when absent. */
  base: text.optional(),
  /** Runs in it, in the sandbox, before the first prompt. */
  setup: text.optional(),
  /** How verified work is merged; the checks run again on the result. */
  merge: z.enum(["none", "branch", "patch", "commit"]).default("branch"),
});
export type TaskWorktree = z.infer<typeof TaskWorktree>;

/** Prepares the clean room of the checks, such as installing the dependencies of a changed lockfile. */
export const TaskSetup = z.strictObject({
  /** One program with its arguments, or a line for the shell. */
  run: z.union([text, z.array(text).min(1)]),
  network: TaskNetwork.default(false),
  timeoutMs: z.number().int().positive().max(3_600_000).default(600_000),
  /**
   * Globs of what it makes of the work, such as installed packages. Anything else that it makes otherwise because of the
   * work is not judged by, because code of the agent's may have made it. Absent: nothing.
   */
  makes: z.array(text).min(1).optional(),
});
export type TaskSetup = z.infer<typeof TaskSetup>;

/** A hop that the harness takes for the thread when the agent says that it is done in the envelope before. */
export const TaskHop = z.strictObject({
  to: envelopeName,
  reason: text.max(2000).default("the next part of the task"),
  /** By the schema of the edge. */
  carry: z.record(z.string(), z.json()).optional(),
  /** What the agent is to do there; absent: to continue with the task. */
  prompt: text.optional(),
});
export type TaskHop = z.infer<typeof TaskHop>;
/** As many as may lead into each other. */
const MAX_TASK_HOPS = 16;

export const StallAction = z.enum(["report", "eof", "kill-child", "interrupt", "retry"]);
export type StallAction = z.infer<typeof StallAction>;

export const TaskSpec = z.strictObject({
  name: text,
  /** Absolute. */
  workspace: text,
  goal: text,
  steps: z.array(TaskStep).default([]),
  /** For the agent; not used for the verdict. */
  acceptance: z.array(text).default([]),
  checks: z.array(TaskCheck).default([]),
  /**
   * Globs, relative to the workspace, of what the agent is to change: only these files are taken from its work for the
   * checks, and only these are merged. `!glob` excludes. Absent: everything it changed, and the verdict names what it
   * rests on.
   */
  deliver: z.array(text).min(1).optional(),
  /**
   * When the user's folder changes: as the agent writes, only with what was verified, or not at all. Absent: live; in a
   * worktree, and of a contest, on-verified.
   */
  apply: z.enum(["live", "on-verified", "never"]).optional(),
  /** Runs in the clean room before the checks. */
  setup: TaskSetup.optional(),
  /** Globs, relative to the workspace, of what the agent must not change. `!glob` excludes. */
  protect: z.array(text).default([]),
  /** A verdict may not rest on changed tests unless `deliver` names them, and no fewer may run than before. */
  protectTests: z.boolean().default(true),
  /** Another model judges work whose checks passed, read-only. It can only add a rejection. */
  secondOpinion: z
    .strictObject({
      provider: text.optional(),
      model: text,
      /** No answer counts as a rejection. */
      required: z.boolean().default(false),
    })
    .optional(),
  /** Absent: as the configuration says. */
  runner: text.optional(),
  provider: text.optional(),
  model: text.optional(),
  effort: text.optional(),
  /** A contest: each of them does the whole task in a tree of its own, and one that is verified is picked. */
  agents: z.array(TaskAgent).min(2).max(MAX_CONTESTANTS).optional(),
  /** Of a contest: the first that is verified, or the best of all that are. Absent: the first. */
  pick: ContestPick.optional(),
  /** Of `pick: best`: what decides, and what among equals. Absent: score where there is one, lines, cost, time. */
  order: z.array(ContestMeasure).min(1).optional(),
  score: TaskScore.optional(),
  /** Of a contest: whose trees and branches stay. Absent: those of the verified. */
  keep: ContestKeep.optional(),
  sandbox: SandboxMode.default("workspace-write"),
  /** By its name; counts more than `sandbox`. */
  envelope: envelopeName.optional(),
  /** The widest envelope that the task may ever have. */
  ceiling: envelopeName.optional(),
  /** The envelopes that it goes through after the first, in order; the checks run after the last. */
  hops: z.array(TaskHop).min(1).max(MAX_TASK_HOPS).optional(),
  network: TaskNetwork.default(false),
  approval: ApprovalPolicy.default("never"),
  schedule: TaskSchedule.optional(),
  /** Names or ids of tasks that must be verified (or, without checks, claimed) first. */
  dependsOn: z.array(text).default([]),
  /** Higher first. */
  priority: z.number().int().default(0),
  /** Labels of the workers that may take it; absent: any worker may. */
  needs: z.array(WorkerLabel).min(1).max(MAX_NEEDS).optional(),
  /** No other task runs in the same folder meanwhile. */
  exclusive: z.boolean().default(true),
  /** In a worktree of its own; absent: in place. */
  worktree: TaskWorktree.optional(),
  budget: TaskBudget.prefault({}),
  retries: TaskRetries.prefault({}),
  /** Turns that the harness may start after the first of an attempt, in all attempts together. */
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
