/** The shapes of tasks over HTTP: requests and answers. Part of http-shapes.ts, and as strict with requests. */
import { z } from "zod";
import { Contest } from "../tasks/contest-shapes.ts";
import { Failure } from "../events/event-parts.ts";
import { Usage } from "../threads/model-output.ts";
import { AfterQuery, flag, Folder, Id, page, PageQuery, time } from "./http-parts.ts";
import { CheckResult, CheckViolation, JudgedWork, SecondOpinion, WorkReview } from "../tasks/task-checks.ts";
import { Culprit, PauseCause, PromptReason, TaskSource, WaitCause } from "../events/task-events.ts";
import { TASK_STATES } from "../tasks/task-record.ts";
import { FailureClass, StallAction, TaskBudget, TaskSpec } from "../tasks/task-spec.ts";

const Note = z.string().max(2000).optional();
const State = z.enum(TASK_STATES);

export const TaskParams = z.strictObject({
  taskId: z
    .string()
    .regex(/^task_[\w-]{1,100}$/, "a task's id begins with task_")
    .describe("A task's id"),
});
export const NotificationParams = z.strictObject({ notificationId: Id });
export const SinkParams = z.strictObject({ sink: Id });
export const SourceParams = z.strictObject({ source: Id });

/** `a,b`: each of them one of these. */
const listOf = <T extends readonly [string, ...string[]]>(values: T) =>
  z
    .string()
    .max(500)
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(values)).min(1));

export const TasksQuery = PageQuery.extend({
  state: listOf(TASK_STATES).optional().describe("Only these states, separated by commas"),
  archived: flag.optional().describe("true: archived tasks; absent or false: the others"),
  workspace: Folder.optional(),
  label: z.string().max(200).optional(),
  parentId: Id.optional().describe("What this schedule has begun, or the contestants of this contest"),
  search: z.string().max(200).optional().describe("Text in the name"),
});
export const TaskLogQuery = AfterQuery;
export const NotificationsQuery = PageQuery.extend({
  sink: Id.optional(),
  state: z.enum(["queued", "delivered", "dead"]).optional().describe("dead: what could not be delivered"),
  taskId: Id.optional(),
});
const UsageBy = ["day", "provider", "model", "workspace", "thread", "task"] as const;
const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, "a day is written 2026-11-15");
export const UsageQuery = PageQuery.extend({
  by: listOf(UsageBy).optional().describe("What to group by, separated by commas; day when absent"),
  from: day.optional().describe("First day, in UTC"),
  to: day.optional().describe("Last day, in UTC"),
  provider: Id.optional(),
  model: Id.optional(),
  workspace: Folder.optional(),
  thread: Id.optional(),
  task: Id.optional(),
});
export const BrowseQuery = z.strictObject({
  path: Folder.optional().describe("A folder; the server's own when absent"),
});

const Spent = z.object({
  timeMs: z.number().describe("Of turns and checks; waiting and pauses do not count"),
  turns: z.number().int(),
  tokens: z.number().int(),
  costUsd: z.number(),
  isCostPartial: z.boolean().describe("A turn had no known price"),
  nudges: z.number().int().describe("Turns that the harness began to have work fixed, since the user last acted"),
});
const Wait = z.object({ cause: WaitCause, message: z.string() });
const Claim = z.object({
  by: z.enum(["report", "marker", "turn-end", "user", "contest"]),
  summary: z.string(),
  attempt: z.number().int(),
});
export const CheckRun = z.object({
  attempt: z.number().int(),
  round: z.number().int(),
  at: time,
  passed: z.boolean(),
  results: z.array(CheckResult).readonly(),
  violations: z.array(CheckViolation).readonly(),
  opinion: SecondOpinion.optional(),
  work: JudgedWork.optional().describe("What was judged, and what it stands for"),
  review: WorkReview.optional().describe("Why the owner has to decide"),
});
const Stall = z.object({
  episode: z.number().int(),
  isOpen: z.boolean(),
  since: time,
  quietMs: z.number().describe("How long nothing had come by then"),
  itemId: z.string().optional().describe("What was running"),
  message: z.string(),
  culprits: z.array(Culprit).readonly(),
  action: StallAction.optional(),
});

const CheckCounts = z.object({
  all: z.number().int().describe("In the spec"),
  passed: z.number().int(),
  failed: z.number().int(),
  errors: z.number().int().describe("Could not be carried out; not among the failed"),
  vacuous: z.number().int().describe("Passed before any work was done; among the passed"),
  violations: z.number().int(),
  at: time.optional().describe("When they were run last; absent: never"),
});
const Activity = z.object({
  itemId: z.string(),
  kind: z.string().describe("Type of the item"),
  text: z.string().optional().describe("The command, the tool, the files: one line, safe to show"),
  since: time,
  lastOutputAt: time.optional().describe("To a second"),
});

const Pause = z.object({ cause: PauseCause, at: time });

const common = {
  id: z.string(),
  state: State.describe("Only verified means that its checks passed"),
  source: TaskSource,
  parentId: z.string().optional(),
  contestant: z.number().int().optional().describe("Which contestant of its parent, a contest, it is"),
  createdAt: time,
  updatedAt: time,
  attempt: z.number().int().describe("0: never taken"),
  threadId: z.string().optional(),
  nextAt: z.number().optional(),
  wait: Wait.optional(),
  reason: z.string().optional().describe("Why it is paused, has failed or was cancelled"),
  pause: Pause.optional().describe("While it is paused"),
  spent: Spent,
};

/** What a list shows. */
export const TaskSummary = z.object({
  ...common,
  name: z.string(),
  workspace: z.string(),
  labels: z.array(z.string()).readonly(),
  priority: z.number().int(),
  steps: z.object({ done: z.number().int(), all: z.number().int() }),
  isStalled: z.boolean(),
  passedLastCheck: z.boolean().optional(),
  budget: TaskBudget.describe("With what was added to it"),
  checks: CheckCounts,
  claim: Claim.optional(),
  stall: z
    .object({ message: z.string(), since: time, culprit: z.string().optional().describe("Its command") })
    .optional()
    .describe("While it is stalled"),
  activity: Activity.optional().describe("What its agent does now"),
  model: z.string().optional().describe("Absent: the spec names none"),
  runner: z.string().optional(),
  dependsOn: z
    .array(z.object({ name: z.string(), id: z.string().optional(), state: State.optional() }))
    .describe("As in the spec, with how those tasks stand now; without id: there is none"),
});

export const Task = z.object({
  ...common,
  stateBefore: State.optional().describe("Before it was archived or paused"),
  spec: TaskSpec,
  occurrence: z.number().optional(),
  contest: Contest.optional().describe("Of a task with agents, once its contestants are on record"),
  seq: z.number().int().describe("Its last event; follow after it"),
  hasEnded: z.boolean().describe("It will not move again by itself"),
  retries: z.number().int().describe("Attempts that followed a failure by rule, since the user last acted"),
  round: z.number().int().describe("Prompts so far, of all attempts"),
  folder: z.string().optional().describe("Where it works: the workspace, or a worktree of it"),
  failure: Failure.extend({ class: FailureClass }).optional(),
  claim: Claim.optional(),
  checking: z
    .object({ name: z.string(), room: z.enum(["baseline", "work", "delivered", "again"]), since: time })
    .optional()
    .describe("The check that runs now"),
  deliver: z.array(z.string()).readonly().optional().describe("What the user accepted as the work"),
  spentNow: Spent.optional().describe("With the open turn, where one is; absent: as `spent`"),
  lastWriteAt: time.optional().describe("When its agent last edited a file, by an edit that was recorded"),
  editsSinceCheck: z
    .number()
    .int()
    .optional()
    .describe("Edits that ended after the checks were run last; 100: or more"),
  lastCheck: CheckRun.optional(),
  stall: Stall.optional(),
  stepsDone: z.array(z.number().int()).readonly(),
  hops: z
    .object({
      taken: z.number().int(),
      refused: z.string().optional().describe("Why the next one has not been taken yet"),
    })
    .readonly()
    .optional()
    .describe("How many of the hops of its spec it has taken"),
  extraBudget: z.record(z.string(), z.number()).readonly().describe("What the user added when it ran out"),
  undone: z
    .object({ at: time, files: z.number().int() })
    .optional()
    .describe("The workspace was restored to its state before the task"),
  merged: z.object({ how: z.string(), ref: z.string() }).optional(),
  replacedBy: z.string().optional(),
});

export const TaskAttempt = z.object({
  attempt: z.number().int(),
  startedAt: time,
  endedAt: time.optional(),
  threadId: z.string().optional(),
  folder: z.string().optional(),
  prompts: z
    .array(z.object({ round: z.number().int(), at: time, why: PromptReason, text: z.string() }))
    .describe("Every turn, and why it was begun"),
  turns: z.number().int(),
  usage: Usage,
  costUsd: z.number().optional().describe("Absent: a price was not known"),
  outcome: z.string().optional().describe("How it ended: verified, failed, retried, cancelled"),
  message: z.string().optional(),
});

export const TaskPage = page(TaskSummary).extend({
  position: z.number().int().describe("Follow /api/events?only=tasks after it, and nothing is missed"),
});
export const AttemptList = z.object({ data: z.array(TaskAttempt) });
export const CheckRunList = z.object({ data: z.array(CheckRun) });
export const StallList = z.object({ data: z.array(TaskSummary.extend({ stall: Stall })) });

export const ReasonBody = z.strictObject({ reason: Note });
export const RetryTaskBody = ReasonBody.extend({
  fresh: z.boolean().optional().describe("In a new thread"),
});
export const ResumeTaskBody = z.strictObject({
  budget: z
    .record(z.string(), z.number().positive())
    .optional()
    .describe("More of what ran out: timeMs, turns, tokens, costUsd"),
  input: z
    .string()
    .min(1)
    .max(100_000)
    .optional()
    .describe("An answer, or other words of the user: the next prompt begins with them"),
});
export const CompleteTaskBody = z.strictObject({ note: Note });
export const RelieveTaskBody = z.strictObject({ action: StallAction });
export const ClearTasksBody = z.strictObject({
  states: z.array(State).min(1).optional().describe("Of tasks that have ended; all of these when absent"),
});
export const ClearedTasks = z.object({
  removed: z.number().int(),
  hasMore: z.boolean().describe("true: call again for the rest"),
});

export const InboxBody = z
  .strictObject({
    text: z.string().min(1).optional(),
    path: Folder.optional().describe("Of a file in an inbox of this server"),
    format: z.enum(["markdown", "yaml", "json"]).optional().describe("Of text; markdown when absent"),
    workspace: Folder.optional(),
    thread: Id.optional(),
    clientId: Id.optional().describe("Repeat a request with the same id and it is the same task"),
  })
  .refine(({ text, path }) => (text === undefined) !== (path === undefined), "give either text or path");
export const WebhookAnswer = z.object({
  outcome: z.enum(["taken", "ignored"]),
  taskId: z.string().optional(),
  reason: z.string().optional(),
});
export const SourceList = z.object({
  data: z.array(z.object({ name: z.string(), kind: z.string(), isSigned: z.boolean() })),
});

export const Notification = z.object({
  id: z.string(),
  sink: z.string(),
  event: z.string(),
  taskId: z.string().optional(),
  state: z.enum(["queued", "delivered", "dead"]),
  tries: z.number().int(),
  nextAt: z.number().optional(),
  message: z.string().optional(),
  payload: z.record(z.string(), z.unknown()).readonly(),
  queuedAt: time,
  updatedAt: time,
});
export const NotificationPage = page(Notification);
export const SinkEntry = z.object({
  name: z.string(),
  kind: z.string(),
  target: z.string().describe("Without what is secret about it"),
  events: z.array(z.string()),
  queued: z.number().int(),
  delivered: z.number().int(),
  dead: z.number().int(),
});
export const SinkList = z.object({ data: z.array(SinkEntry) });
export const SinkTest = z.object({
  outcome: z.enum(["delivered", "retry", "dead"]),
  status: z.number().int().optional(),
  message: z.string(),
});

export const UsageEntry = z.object({
  of: z.partialRecord(z.enum(UsageBy), z.string()).describe("Empty: belongs to none, or to a thread that was deleted"),
  requests: z.number().int(),
  unpriced: z.number().int().describe("Of these requests the price is not known"),
  usage: Usage,
  costUsd: z.number(),
});
export const UsagePage = page(UsageEntry);

export const FolderList = z.object({ path: z.string(), folders: z.array(z.string()), isCut: z.boolean() });
export const WorkspaceList = z.object({ data: z.array(z.string()) });

export const ConfigSummary = z.object({
  carriesOutTasks: z.boolean(),
  concurrency: z.number().int(),
  workspaceRoots: z.array(z.string()).nullable().describe("null: any folder"),
  inboxes: z.array(z.string()),
  sinks: z.array(SinkEntry.pick({ name: true, kind: true, target: true, events: true })),
  webhooks: SourceList.shape.data,
  publicUrl: z.string().optional().describe("Where users reach the dashboard from elsewhere"),
});
/** How turns and tasks are set up, without what only an owner may know. */
export const ConfigAnswer = ConfigSummary.extend({
  file: z.string().optional().describe("The configuration that is read; for owners"),
  turn: z
    .object({
      settings: z
        .looseObject({ provider: z.string(), model: z.string() })
        .describe("Model, runner, sandbox, envelope and approvals of a turn that begins now in the server's folder"),
      sources: z.record(z.string(), z.string()).describe("Where each value is from: default, file, flag, profile"),
    })
    .optional(),
  problem: z
    .object({ code: z.string(), message: z.string() })
    .optional()
    .describe("Why no turn can begin now, such as a missing key"),
});
export type ConfigAnswer = z.output<typeof ConfigAnswer>;
export const StateAnswer = z.object({
  version: z.string(),
  now: time,
  position: z.number().int().describe("Follow /api/events after it, and nothing is missed"),
  counts: z.partialRecord(State, z.number().int()),
  tasks: z.array(TaskSummary).describe("The newest that are not archived"),
  stalls: StallList.shape.data,
  approvals: z.number().int().describe("Questions without an answer"),
  sinks: z.array(SinkEntry),
  usage: z.object({ today: z.array(UsageEntry), month: z.array(UsageEntry), total: z.array(UsageEntry) }),
  dayLimits: z
    .object({ costUsd: z.number().optional(), tokens: z.number().optional(), turns: z.number().optional() })
    .describe("What the whole home may use in a day, in UTC; then no turn begins before the next"),
  config: ConfigSummary,
});

/** As clients get them. */
export type Task = z.output<typeof Task>;
export type TaskSummary = z.output<typeof TaskSummary>;
export type TaskPage = z.output<typeof TaskPage>;
export type TaskAttempt = z.output<typeof TaskAttempt>;
export type AttemptList = z.output<typeof AttemptList>;
export type CheckRunList = z.output<typeof CheckRunList>;
export type ClearedTasks = z.output<typeof ClearedTasks>;
export type ConfigSummary = z.output<typeof ConfigSummary>;
export type FolderList = z.output<typeof FolderList>;
export type Notification = z.output<typeof Notification>;
export type NotificationPage = z.output<typeof NotificationPage>;
export type SinkList = z.output<typeof SinkList>;
export type SinkTest = z.output<typeof SinkTest>;
export type StallList = z.output<typeof StallList>;
export type StateAnswer = z.output<typeof StateAnswer>;
export type UsageBy = (typeof UsageBy)[number];
export type UsagePage = z.output<typeof UsagePage>;
export type WorkspaceList = z.output<typeof WorkspaceList>;

/** As clients may write them. */
export type ClearTasksInput = z.input<typeof ClearTasksBody>;
export type CompleteTaskInput = z.input<typeof CompleteTaskBody>;
export type NotificationsQueryInput = z.input<typeof NotificationsQuery>;
export type ReasonInput = z.input<typeof ReasonBody>;
export type RelieveTaskInput = z.input<typeof RelieveTaskBody>;
export type RetryTaskInput = z.input<typeof RetryTaskBody>;
export type ResumeTaskInput = z.input<typeof ResumeTaskBody>;
export type SendOrderInput = z.input<typeof InboxBody>;
export type TaskLogQueryInput = z.input<typeof TaskLogQuery>;
export type TasksQueryInput = z.input<typeof TasksQuery>;
export type UsageQueryInput = z.input<typeof UsageQuery>;
