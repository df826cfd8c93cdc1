/** What a stored event of a task is called in notifications, and the data that goes with it. Pure. */
import type { EventOf, StoredEvent, Takeover, TaskEventBody, TaskRecord } from "@heddle/protocol";
import type { Activity } from "./activity.ts";
import type { NotificationName } from "./names.ts";

export interface Notice {
  readonly name: NotificationName;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The record has the whole output. */
const MAX_EXCERPT_CHARS = 2_000;
/** A longer goal is cut. */
const MAX_GOAL_CHARS = 10_000;

export function noticesOf(body: TaskEventBody, task: TaskRecord): readonly Notice[] {
  const own = ownNames(body, task);
  // Every change is an update too, except the creation.
  return body.type === "task.created" ? own : [...own, { name: "TASK_UPDATED", data: updated(body, task) }];
}

function ownNames(body: TaskEventBody, task: TaskRecord): readonly Notice[] {
  switch (body.type) {
    case "task.created":
      return [created(body)];
    case "task.prepared":
      return [started(body)];
    case "task.waited":
      return body.cause === "approval" ? [{ name: "PERMISSION_WAITING", data: { summary: body.message } }] : [];
    case "task.turn-ended":
      return body.failure === undefined
        ? []
        : [{ name: "LOG_LINE", data: { error: body.failure.message, summary: `turn ${body.status}` } }];
    case "task.claimed":
      return claimed(body, task);
    case "task.checked":
      return body.passed ? [] : [{ name: "VERIFY_FAILED", data: failedChecks(body) }];
    case "task.verified":
      return [{ name: "TASK_VERIFIED", data: ending(task) }, completed(task)];
    case "task.failed":
      return [
        {
          name: "TASK_FAILED",
          data: { error: body.failure.message, code: body.failure.code, class: body.class, summary: "the task failed" },
        },
      ];
    case "task.paused":
      return body.cause === "budget"
        ? [{ name: "BUDGET_PAUSED", data: { summary: body.message, spent: task.spent } }]
        : [];
    case "task.budget-warned":
      return [{ name: "BUDGET_WARNING", data: { what: body.what, spent: body.spent, limit: body.limit } }];
    case "task.stalled":
      return stalled(body, task);
    case "task.stall-acted":
      return [{ name: "LOG_LINE", data: { summary: `${body.action}: ${body.message}` } }];
    case "task.retried":
      return [{ name: "LOG_LINE", data: { summary: body.reason } }];
    case "task.merged":
      return [{ name: "LOG_LINE", data: { summary: `merged as ${body.how}: ${body.ref}` } }];
    default:
      return [];
  }
}

function created({ spec, source }: EventOf<"task.created">): Notice {
  const goal = spec.goal.length <= MAX_GOAL_CHARS ? spec.goal : `${spec.goal.slice(0, MAX_GOAL_CHARS)}…`;
  return { name: "TASK_CREATED", data: { spec: { ...spec, goal }, workspace: spec.workspace, source } };
}

function started({ threadId, attempt, folder }: EventOf<"task.prepared">): Notice {
  return {
    name: "TASK_STARTED",
    data: { session_id: threadId, thread_id: threadId, attempt, folder, summary: `attempt ${attempt} begins` },
  };
}

/** The end only of a task without checks, or when the user marked it as done. */
function claimed(body: EventOf<"task.claimed">, task: TaskRecord): readonly Notice[] {
  const notices: Notice = { name: "TASK_CLAIMED", data: { by: body.by, summary: body.summary } };
  return task.holder === undefined ? [notices, completed(task)] : [notices];
}

/** Says whether it was verified. */
function completed(task: TaskRecord): Notice {
  return { name: "TASK_COMPLETED", data: { ...ending(task), progress: progressOf(task) } };
}

function ending(task: TaskRecord): Readonly<Record<string, unknown>> {
  const isVerified = task.state === "verified";
  const summary = task.claim?.summary ?? "";
  return { verified: isVerified, summary: isVerified ? summary : `reported as done, not checked: ${summary}` };
}

function failedChecks({ results, violations, opinion }: EventOf<"task.checked">): Readonly<Record<string, unknown>> {
  const failing = results.filter(({ outcome }) => outcome !== "passed");
  return {
    summary: [...failing.map(({ name }) => name), ...violations.map(({ kind }) => kind)].join(", "),
    failing: failing.map(({ name, outcome, message, output }) => ({
      name,
      outcome,
      message,
      ...(output === undefined ? {} : { output: output.slice(-MAX_EXCERPT_CHARS) }),
    })),
    violations,
    ...(opinion === undefined ? {} : { opinion }),
  };
}

function stalled(body: EventOf<"task.stalled">, task: TaskRecord): readonly Notice[] {
  const stuckForSeconds = Math.round(body.quietMs / 1000);
  const data = { summary: body.message, stuck_for_seconds: stuckForSeconds, culprits: body.culprits };
  return [
    { name: "TASK_STALLED", data: { ...data, episode: body.episode } },
    {
      name: "SESSION_STALE_BUSY",
      data: {
        ...data,
        session_id: task.threadId ?? "",
        title: task.spec.name,
        directory: task.folder ?? task.spec.workspace,
        // OpenLoom counts polls; here each period of silence is one alert.
        consecutive_busy_checks: 1,
        threshold_checks: 1,
      },
    },
  ];
}

function updated(body: TaskEventBody, task: TaskRecord): Readonly<Record<string, unknown>> {
  return {
    change: body.type,
    current_step: task.stepsDone.at(-1) ?? 0,
    progress: progressOf(task),
    summary: task.reason ?? task.wait?.message ?? task.claim?.summary ?? "",
    ...(body.type === "task.deleted" ? { deleted: true } : {}),
  };
}

/** Of the steps; 1 only when verified. */
function progressOf({ state, stepsDone, spec }: TaskRecord): number {
  if (state === "verified") return 1;
  if (spec.steps.length === 0) return 0;
  return Math.min(0.99, stepsDone.length / spec.steps.length);
}

/** Of the thread that works on the task, and where users find it. */
interface ThreadNews {
  readonly url: string | undefined;
  readonly activity: readonly Activity[];
  readonly takeover: Takeover | undefined;
}

type Payload = Readonly<Record<string, JsonValue>>;
type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** Of the shape: it changes when receivers would have to. */
const SCHEMA_VERSION = "1.0";

/** The whole notification, in the shape that OpenLoom's receivers know. */
export function payloadOf(
  { name, data }: Notice,
  event: Pick<StoredEvent, "at" | "position">,
  task: TaskRecord,
  { activity, takeover, url }: ThreadNews,
): Payload {
  const payload = {
    schema_version: SCHEMA_VERSION,
    event: name,
    task_id: task.id,
    task_name: task.spec.name,
    timestamp: event.at / 1000,
    timestamp_iso: new Date(event.at).toISOString(),
    store_version: event.position,
    data: {
      status: task.state,
      ...data,
      active_session_id: task.threadId ?? task.spec.thread ?? null,
      recent_activity: activity,
      takeover,
      url,
    },
  };
  // Exactly what JSON can carry: an absent value is absent.
  return JSON.parse(JSON.stringify(payload)) as Payload;
}
