/**
 * Every stored event of a task's stream; part of the union in events.ts. What they mean for the task's state is
 * task-machine.ts. `attempt` is the generation: what another attempt says is refused.
 */
import { z } from "zod";
import { Failure, Holder } from "./event-parts.ts";
import { Usage } from "./model-output.ts";
import { CheckResult, CheckViolation, JudgedWork, TaskBaseline, WorkReview } from "./task-checks.ts";
import { FailureClass, StallAction, TaskSpec } from "./task-spec.ts";

const v1 = z.literal(1);
const attempt = z.number().int().positive();
const round = z.number().int().positive();

export const TaskSource = z.object({
  kind: z.enum(["cli", "inbox", "http", "webhook", "schedule", "chat"]),
  /** File, address or name it came from. */
  ref: z.string().optional(),
  /** Of that file, as it was read. */
  sha256: z.string().optional(),
});
export type TaskSource = z.infer<typeof TaskSource>;

/** Why the harness, or a user, says something to the agent. */
export const PromptReason = z.enum(["first", "rejected", "continue", "restarted", "resumed", "retry", "stall", "user"]);
export type PromptReason = z.infer<typeof PromptReason>;

export const WaitCause = z.enum(["schedule", "dependency", "workspace", "backoff", "store", "approval", "provider"]);
export type WaitCause = z.infer<typeof WaitCause>;

/** One process that is, or looks like, what everybody waits for. */
export const Culprit = z.object({
  pid: z.number().int(),
  command: z.string(),
  /** Of the kernel: R, S, D, Z, T. */
  state: z.string(),
  waitChannel: z.string().optional(),
  /** Since the process began, and over the last look. */
  cpuMs: z.number(),
  recentCpuMs: z.number(),
  openSockets: z.number().int(),
  readsStdin: z.boolean(),
  runningMs: z.number(),
});
export type Culprit = z.infer<typeof Culprit>;

export const taskEvents = [
  z.object({
    type: z.literal("task.created"),
    v: v1,
    spec: TaskSpec,
    source: TaskSource,
    /** Of a scheduled task: the one with the schedule, and the time this one stands for. */
    parentId: z.string().optional(),
    occurrence: z.number().optional(),
    /** Not before this time. */
    notBefore: z.number().optional(),
    /** Tasks on the same thread that this one takes over from. */
    replaces: z.array(z.string()).optional(),
  }),
  /** It cannot go on by itself. `until`: looked at again then; absent: when what it waits for changes. */
  z.object({
    type: z.literal("task.waited"),
    v: v1,
    cause: WaitCause,
    message: z.string(),
    until: z.number().optional(),
  }),
  /** What it waited for has come: it goes on, or stands in the queue again. */
  z.object({ type: z.literal("task.woken"), v: v1 }),
  /** A worker has taken the task. Appended on the version it saw, so that of two workers one gets it. */
  z.object({ type: z.literal("task.taken"), v: v1, attempt, holder: Holder }),
  /** The attempt has its place and what it will be measured against. */
  z.object({
    type: z.literal("task.prepared"),
    v: v1,
    attempt,
    threadId: z.string(),
    /** Where it works: the workspace, or a worktree of it. */
    folder: z.string(),
    /** Absent: as it was taken for an earlier attempt; the agent has worked there since. */
    baseline: TaskBaseline.optional(),
  }),
  /**
   * What the agent is to be told, stored before it is told. `clientId` makes telling it again harmless: a crash between
   * this and the turn neither loses nor doubles the prompt.
   */
  z.object({
    type: z.literal("task.prompted"),
    v: v1,
    attempt,
    round,
    clientId: z.string(),
    why: PromptReason,
    text: z.string(),
  }),
  z.object({
    type: z.literal("task.turn-ended"),
    v: v1,
    attempt,
    round,
    turnId: z.string(),
    status: z.enum(["completed", "failed", "interrupted"]),
    failure: Failure.optional(),
    usage: Usage,
    costUsd: z.number().optional(),
    durationMs: z.number(),
  }),
  /** Steps said to be done; the highest set counts, and nothing is taken back. */
  z.object({ type: z.literal("task.progressed"), v: v1, attempt, stepsDone: z.array(z.number().int().positive()) }),
  /** Somebody says it is done. Nothing more. */
  z.object({
    type: z.literal("task.claimed"),
    v: v1,
    attempt,
    by: z.enum(["report", "marker", "turn-end", "user"]),
    summary: z.string(),
  }),
  /** A check is run from now on, so that one that hangs is seen. `room`: on what. */
  z.object({
    type: z.literal("task.checking"),
    v: v1,
    attempt,
    name: z.string(),
    /** The beginning, the work as it was frozen, only what is delivered of it, or once more to see whether it is flaky. */
    room: z.enum(["baseline", "work", "delivered", "again"]),
  }),
  /** The checks were run, by the harness, on the work as it was frozen at the claim. */
  z.object({
    type: z.literal("task.checked"),
    v: v1,
    attempt,
    round,
    results: z.array(CheckResult),
    violations: z.array(CheckViolation),
    /** Of another model; it can only add a rejection. `failure`: it could not be had, and `accepts` is what the spec makes of that. */
    opinion: z
      .object({
        model: z.string(),
        accepts: z.boolean(),
        reason: z.string(),
        failure: Failure.optional(),
        /** Where it was asked for. */
        threadId: z.string().optional(),
        usage: Usage.optional(),
        costUsd: z.number().optional(),
      })
      .optional(),
    passed: z.boolean(),
    work: JudgedWork.optional(),
    /** Nothing failed, and yet it is not verified: the owner decides. */
    review: WorkReview.optional(),
    /** Of freezing and all runs of checks; absent: the sum of the results. */
    durationMs: z.number().optional(),
  }),
  z.object({ type: z.literal("task.verified"), v: v1, attempt }),
  z.object({ type: z.literal("task.rejected"), v: v1, attempt, failing: z.array(z.string()) }),
  /** Verified work of a worktree came back, or could not. */
  z.object({
    type: z.literal("task.merged"),
    v: v1,
    attempt,
    how: z.enum(["branch", "patch", "commit"]),
    /** Branch, file or commit. */
    ref: z.string(),
  }),
  z.object({
    type: z.literal("task.paused"),
    v: v1,
    cause: z.enum(["user", "budget", "nudges", "stall", "question", "review", "fault"]),
    message: z.string(),
  }),
  z.object({
    type: z.literal("task.resumed"),
    v: v1,
    /** More of what ran out. */
    budget: z.record(z.string(), z.number()).optional(),
    /** Of a review: the owner says that these are the work. It is judged again with them, as it was frozen. */
    deliver: z.array(z.string()).min(1).optional(),
  }),
  z.object({
    type: z.literal("task.budget-warned"),
    v: v1,
    what: z.enum(["time", "turns", "tokens", "cost"]),
    spent: z.number(),
    limit: z.number(),
  }),
  /** One a spell of silence; the next one needs a recovery first. */
  z.object({
    type: z.literal("task.stalled"),
    v: v1,
    attempt,
    episode: z.number().int().positive(),
    message: z.string(),
    quietMs: z.number(),
    itemId: z.string().optional(),
    culprits: z.array(Culprit),
  }),
  z.object({ type: z.literal("task.recovered"), v: v1, attempt, episode: z.number().int().positive() }),
  z.object({
    type: z.literal("task.stall-acted"),
    v: v1,
    attempt,
    episode: z.number().int().positive(),
    action: StallAction,
    message: z.string(),
  }),
  z.object({
    type: z.literal("task.failed"),
    v: v1,
    attempt: attempt.optional(),
    class: FailureClass,
    failure: Failure,
  }),
  /** Another attempt, by rule (then with the attempt it follows) or by a user. */
  z.object({
    type: z.literal("task.retried"),
    v: v1,
    attempt: attempt.optional(),
    /** What went wrong; absent: nothing did, the worker gave it back. */
    class: FailureClass.optional(),
    failure: Failure.optional(),
    /** In a new thread. */
    isFresh: z.literal(true).optional(),
    notBefore: z.number().optional(),
    reason: z.string(),
  }),
  z.object({ type: z.literal("task.cancelled"), v: v1, reason: z.string(), replacedBy: z.string().optional() }),
  /** The workspace was put back to how it was when the task began. */
  z.object({ type: z.literal("task.undone"), v: v1, attempt: attempt.optional(), files: z.number().int() }),
  z.object({ type: z.literal("task.archived"), v: v1, isArchived: z.boolean() }),
  z.object({ type: z.literal("task.deleted"), v: v1 }),

  /** In the stream of a sink: something to be delivered, with the whole content, and what became of it. */
  z.object({
    type: z.literal("notification.queued"),
    v: v1,
    notificationId: z.string(),
    sink: z.string(),
    /** In the words of notifications: TASK_VERIFIED. */
    event: z.string(),
    /** Of the event it tells of; the sink has read up to there. */
    position: z.number(),
    payload: z.record(z.string(), z.json()),
  }),
  z.object({
    type: z.literal("notification.tried"),
    v: v1,
    notificationId: z.string(),
    outcome: z.enum(["delivered", "retry", "dead"]),
    status: z.number().optional(),
    message: z.string(),
    /** Of `retry`. */
    nextAt: z.number().optional(),
  }),
  z.object({ type: z.literal("notification.redelivered"), v: v1, notificationId: z.string() }),
  /**
   * The sink has read up to here and has nothing to tell of what lies between. Where a new sink begins, and the bound on
   * what is read again after a restart.
   */
  z.object({ type: z.literal("notification.read"), v: v1, sink: z.string(), position: z.number() }),
] as const;
