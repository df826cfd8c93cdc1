/**
 * Every stored event of a task's stream; part of the union in events.ts. What they mean for the task's state is
 * task-machine.ts. `attempt` is the generation: what another attempt says is refused.
 */
import { z } from "zod";
import { Contestant, ContestRow } from "../tasks/contest-shapes.ts";
import { event, Failure, Holder } from "./event-parts.ts";
import { Usage } from "../threads/model-output.ts";
import {
  CheckResult,
  CheckViolation,
  JudgedWork,
  SecondOpinion,
  TaskBaseline,
  WorkReview,
} from "../tasks/task-checks.ts";
import { FailureClass, StallAction, TaskBudget, TaskSpec } from "../tasks/task-spec.ts";

const attempt = z.number().int().positive();
const hopIndex = z.number().int().nonnegative();
const round = z.number().int().positive();

export const TaskSource = z.object({
  kind: z.enum(["cli", "inbox", "http", "webhook", "schedule", "chat", "mcp"]),
  /** File, address or name it came from. */
  ref: z.string().optional(),
  /** Of that file, as it was read. */
  sha256: z.string().optional(),
});
export type TaskSource = z.infer<typeof TaskSource>;

/** Why the harness, or a user, prompts the agent. */
export const PromptReason = z.enum([
  "first",
  "rejected",
  "continue",
  "restarted",
  "resumed",
  "retry",
  "stall",
  "user",
  "hopped",
  "hop-refused",
]);
export type PromptReason = z.infer<typeof PromptReason>;

export const WaitCause = z.enum([
  "schedule",
  "dependency",
  "workspace",
  "backoff",
  "store",
  "approval",
  "provider",
  "contest",
]);
export type WaitCause = z.infer<typeof WaitCause>;

export const PauseCause = z.enum(["user", "budget", "nudges", "stall", "question", "review", "fault"]);
export type PauseCause = z.infer<typeof PauseCause>;

/** A process that the turn seems to wait for. */
export const Culprit = z.object({
  pid: z.number().int(),
  command: z.string(),
  /** Of the kernel: R, S, D, Z, T. */
  state: z.string(),
  waitChannel: z.string().optional(),
  /** Since the process started, and since the last look. */
  cpuMs: z.number(),
  recentCpuMs: z.number(),
  openSockets: z.number().int(),
  readsStdin: z.boolean(),
  runningMs: z.number(),
});
export type Culprit = z.infer<typeof Culprit>;

export const taskEvents = [
  event("task.created", {
    spec: TaskSpec,
    source: TaskSource,
    /** Of a scheduled task: the one with the schedule, and the time this one runs for. Of a contestant: its contest. */
    parentId: z.string().optional(),
    occurrence: z.number().optional(),
    /** Of a contest: which of its contestants this task is; the contest is its parent. */
    contestant: z.number().int().positive().optional(),
    /** Not before this time. */
    notBefore: z.number().optional(),
    /** Tasks on the same thread that this one replaces. */
    replaces: z.array(z.string()).optional(),
  }),
  /** It cannot continue by itself. `until`: checked again then; absent: when what it waits for changes. */
  event("task.waited", { cause: WaitCause, message: z.string(), until: z.number().optional() }),
  /** No longer waiting: it continues, or is queued again. */
  event("task.woken", {}),
  /** A worker has taken the task. Appended on the version it saw, so that of two workers one gets it. */
  event("task.taken", { attempt, holder: Holder }),
  /** The attempt has a folder, and a baseline to compare with. */
  event("task.prepared", {
    attempt,
    threadId: z.string(),
    /** Where it works: the workspace, or a worktree of it. */
    folder: z.string(),
    /** Absent: that of an earlier attempt; the agent has worked there since. */
    baseline: TaskBaseline.optional(),
  }),
  /**
   * Stored before it is sent to the agent. `clientId` makes sending it again harmless: a crash between this and the turn
   * neither loses nor doubles the prompt.
   */
  event("task.prompted", { attempt, round, clientId: z.string(), why: PromptReason, text: z.string() }),
  event("task.turn-ended", {
    attempt,
    round,
    turnId: z.string(),
    status: z.enum(["completed", "failed", "interrupted"]),
    failure: Failure.optional(),
    usage: Usage,
    costUsd: z.number().optional(),
    durationMs: z.number(),
  }),
  /** Steps reported as done; none is taken back. */
  event("task.progressed", { attempt, stepsDone: z.array(z.number().int().positive()) }),
  /** The agent or the user says that it is done. Nothing is verified by it. */
  event("task.claimed", {
    attempt,
    by: z.enum(["report", "marker", "turn-end", "user", "contest"]),
    summary: z.string(),
  }),
  /**
   * The agent says that it is done in the envelope it is in, so the next hop of the spec is to be taken. `index` counts the
   * hops of the spec from 0.
   */
  event("task.hop-due", { attempt, index: hopIndex, to: z.string(), summary: z.string() }),
  event("task.hopped", { attempt, index: hopIndex, to: z.string() }),
  /** The thread stays where it is. */
  event("task.hop-refused", { attempt, index: hopIndex, to: z.string(), failure: Failure }),
  /** A check starts, so that one that hangs is seen. `room`: on what it runs. */
  event("task.checking", {
    attempt,
    name: z.string(),
    /** The baseline, the frozen work, only what is delivered of it, or once more to see whether it is flaky. */
    room: z.enum(["baseline", "work", "delivered", "again"]),
  }),
  /** The checks were run, by the harness, on the work as it was frozen at the claim. */
  event("task.checked", {
    attempt,
    round,
    results: z.array(CheckResult),
    violations: z.array(CheckViolation),
    opinion: SecondOpinion.optional(),
    passed: z.boolean(),
    work: JudgedWork.optional(),
    /** Nothing failed, but it is not verified: the owner decides. */
    review: WorkReview.optional(),
    /** Of freezing and all runs of checks; absent: the sum of the results. */
    durationMs: z.number().optional(),
  }),
  event("task.verified", { attempt }),
  event("task.rejected", { attempt, failing: z.array(z.string()) }),
  /** Verified work of a worktree was merged. */
  event("task.merged", {
    attempt,
    how: z.enum(["branch", "patch", "commit"]),
    /** Branch, file or commit. */
    ref: z.string(),
  }),
  event("task.paused", {
    cause: PauseCause,
    message: z.string(),
  }),
  event("task.resumed", {
    /** More of what ran out. */
    budget: z.record(z.string(), z.number()).optional(),
    /** Of a review: the files that the owner accepts as the work. The frozen work is judged again with them. */
    deliver: z.array(z.string()).min(1).optional(),
    /** What the user says to the agent, with the next prompt. */
    input: z.string().min(1).optional(),
  }),
  /** Its owner wants it otherwise from here on. `budget`: whole limits in place of those there were, what was added included. */
  event("task.changed", {
    name: z.string().min(1).optional(),
    labels: z.array(z.string().min(1)).optional(),
    priority: z.number().int().optional(),
    budget: TaskBudget.omit({ onReached: true }).partial().optional(),
  }),
  event("task.budget-warned", {
    what: z.enum(["time", "turns", "tokens", "cost"]),
    spent: z.number(),
    limit: z.number(),
  }),
  /** Once per silence; the next one needs a recovery first. */
  event("task.stalled", {
    attempt,
    episode: z.number().int().positive(),
    message: z.string(),
    quietMs: z.number(),
    itemId: z.string().optional(),
    culprits: z.array(Culprit),
  }),
  event("task.recovered", { attempt, episode: z.number().int().positive() }),
  event("task.stall-acted", {
    attempt,
    episode: z.number().int().positive(),
    action: StallAction,
    message: z.string(),
  }),
  event("task.failed", { attempt: attempt.optional(), class: FailureClass, failure: Failure }),
  /** Another attempt, by rule (then with the attempt it follows) or by the user. */
  event("task.retried", {
    attempt: attempt.optional(),
    /** What went wrong; absent: the worker gave the task back. */
    class: FailureClass.optional(),
    failure: Failure.optional(),
    /** In a new thread. */
    isFresh: z.literal(true).optional(),
    notBefore: z.number().optional(),
    reason: z.string(),
  }),
  event("task.cancelled", { reason: z.string(), replacedBy: z.string().optional() }),
  /** The workspace was restored to its state before the task. */
  /** Stored before the tasks of the contestants are, whose ids are made from the contest, so that each is made once. */
  event("task.contest-opened", {
    attempt,
    generation: z.number().int().positive(),
    contestants: z.array(Contestant),
  }),
  /** Its work is judged once more, for the contest, and then brought back. */
  event("task.contest-picked", {
    attempt,
    number: z.number().int().positive(),
    reason: z.string(),
    rows: z.array(ContestRow),
  }),
  /** Without `number` nobody was picked. */
  event("task.contest-ended", {
    attempt,
    number: z.number().int().positive().optional(),
    reason: z.string(),
    rows: z.array(ContestRow),
  }),
  event("task.undone", { attempt: attempt.optional(), files: z.number().int() }),
  event("task.archived", { isArchived: z.boolean() }),
  event("task.deleted", {}),

  /** In the stream of a sink: what is to be delivered, with its whole content, and what became of it. */
  event("notification.queued", {
    notificationId: z.string(),
    sink: z.string(),
    /** The name of the notification: TASK_VERIFIED. */
    event: z.string(),
    /** Of the event it reports; the sink has read up to there. */
    position: z.number(),
    payload: z.record(z.string(), z.json()),
  }),
  event("notification.tried", {
    notificationId: z.string(),
    outcome: z.enum(["delivered", "retry", "dead"]),
    status: z.number().optional(),
    message: z.string(),
    /** Of `retry`. */
    nextAt: z.number().optional(),
  }),
  event("notification.redelivered", { notificationId: z.string() }),
  /**
   * The sink has read up to here without anything to report. Where a new sink starts, and the limit of what is read again
   * after a restart.
   */
  event("notification.read", { sink: z.string(), position: z.number() }),
] as const;
