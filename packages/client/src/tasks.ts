/** Work orders of a server: sent, followed, steered. Whether one is done is decided by its checks, never by an answer here. */
import { HeddleApiError } from "./api-error.ts";
import { follow, type FollowOptions } from "./follow.ts";
import type { Call, Http } from "./http.ts";
import type {
  Accepted,
  AcceptTask,
  AttemptList,
  CheckRunList,
  ClearedTasks,
  ClearTasks,
  CompleteTask,
  CreatedTask,
  CreateTask,
  EventPage,
  LintAnswer,
  LintTask,
  Followed,
  PatchTask,
  PlanAnswer,
  PlanTask,
  Reason,
  RelieveTask,
  ResumeTask,
  RetryTask,
  SendOrder,
  StallList,
  Task,
  TaskDiff,
  TaskDiffQuery,
  TaskLogQuery,
  TaskPage,
  TasksQuery,
  TaskVerification,
  UndoneTask,
  UndoTask,
} from "./types.ts";

export interface RunTaskOptions extends Omit<FollowOptions, "threadId" | "taskId" | "only" | "after" | "live"> {
  /** Hears what happens on the way. */
  readonly onEvent?: (followed: Followed) => void;
}

export class TaskClient {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  list({ state, ...query }: TasksQuery = {}, call?: Call): Promise<TaskPage> {
    return this.#http.json("GET", "api/tasks", { ...call, query: { ...query, state: state?.join(",") } });
  }

  /** Answered when it is durable. With a `clientId` it can be sent again after a broken connection. */
  create(task: CreateTask, call?: Call): Promise<CreatedTask> {
    return this.#http.json("POST", "api/tasks", { ...call, body: task });
  }

  /** A model proposes steps and checks; nothing is added before `plan` of the answer is given to `create`. */
  plan(task: PlanTask, call?: Call): Promise<PlanAnswer> {
    return this.#http.json("POST", "api/tasks/plan", { ...call, body: task });
  }

  /** As a file in an inbox would be taken. */
  send(order: SendOrder, call?: Call): Promise<CreatedTask> {
    return this.#http.json("POST", "api/inbox", { ...call, body: order });
  }

  /** Says what is wrong with a task, or what it means; with `run`, what its checks say as things are. Nothing is added. */
  lint(task: LintTask, call?: Call): Promise<LintAnswer> {
    return this.#http.json("POST", "api/tasks/lint", { ...call, body: task });
  }

  read(taskId: string, call?: Call): Promise<Task> {
    return this.#http.json("GET", at(taskId), call);
  }

  log(taskId: string, query: TaskLogQuery = {}, call?: Call): Promise<EventPage> {
    return this.#http.json("GET", at(taskId, "log"), { ...call, query });
  }

  attempts(taskId: string, call?: Call): Promise<AttemptList> {
    return this.#http.json("GET", at(taskId, "attempts"), call);
  }

  checks(taskId: string, call?: Call): Promise<CheckRunList> {
    return this.#http.json("GET", at(taskId, "checks"), call);
  }

  stalls(call?: Call): Promise<StallList> {
    return this.#http.json("GET", "api/stalls", call);
  }

  pause(taskId: string, why: Reason = {}, call?: Call): Promise<Task> {
    return this.#move(taskId, "pause", why, call);
  }

  resume(taskId: string, more: ResumeTask = {}, call?: Call): Promise<Task> {
    return this.#move(taskId, "resume", more, call);
  }

  cancel(taskId: string, why: Reason = {}, call?: Call): Promise<Task> {
    return this.#move(taskId, "cancel", why, call);
  }

  retry(taskId: string, how: RetryTask = {}, call?: Call): Promise<Task> {
    return this.#move(taskId, "retry", how, call);
  }

  /** What was put to its owner is the work: judged again with it, or ended on a person's word. */
  accept(taskId: string, word: AcceptTask = {}, call?: Call): Promise<Task> {
    return this.#move(taskId, "accept", word, call);
  }

  /** Another name, labels, priority or limits. */
  change(taskId: string, changes: PatchTask, call?: Call): Promise<Task> {
    return this.#http.json("PATCH", at(taskId), { ...call, body: changes });
  }

  /** Verified work of a worktree onto the branch that is checked out; judged again where that has changed. */
  merge(taskId: string, call?: Call): Promise<Task> {
    return this.#move(taskId, "merge", {}, call);
  }

  /** Puts its workspace back to how it was when the task began. */
  undo(taskId: string, how: UndoTask = {}, call?: Call): Promise<UndoneTask> {
    return this.#http.json("POST", at(taskId, "undo"), { ...call, body: how });
  }

  diff(taskId: string, query: TaskDiffQuery = {}, call?: Call): Promise<TaskDiff> {
    return this.#http.json("GET", at(taskId, "diff"), { ...call, query });
  }

  /** Judges it again from what was kept of it; nothing is stored. */
  verify(taskId: string, call?: Call): Promise<TaskVerification> {
    return this.#http.json("POST", at(taskId, "verify"), { ...call, body: {} });
  }

  /** A person's word: claimed, never verified. */
  complete(taskId: string, word: CompleteTask = {}, call?: Call): Promise<Task> {
    return this.#move(taskId, "complete", word, call);
  }

  relieve(taskId: string, relief: RelieveTask, call?: Call): Promise<Task> {
    return this.#move(taskId, "relieve", relief, call);
  }

  archive(taskId: string, call?: Call): Promise<Task> {
    return this.#move(taskId, "archive", {}, call);
  }

  unarchive(taskId: string, call?: Call): Promise<Task> {
    return this.#move(taskId, "unarchive", {}, call);
  }

  delete(taskId: string, call?: Call): Promise<Accepted> {
    return this.#http.json("DELETE", at(taskId), call);
  }

  /** Deletes those that have ended; call again while `hasMore`. */
  clear(which: ClearTasks = {}, call?: Call): Promise<ClearedTasks> {
    return this.#http.json("POST", "api/tasks/clear", { ...call, body: which });
  }

  /** Every stored event of a task once and in order, through broken connections and restarts of the server. */
  follow(taskId: string, options: Omit<FollowOptions, "threadId" | "taskId" | "only"> = {}): AsyncGenerator<Followed> {
    return follow(this.#http, { ...options, taskId });
  }

  /** Adds a task and waits until it has ended or is paused. */
  async run(task: CreateTask, { onEvent, ...options }: RunTaskOptions = {}): Promise<Task> {
    let now: Task = await this.create(task, options);
    const { id, seq } = now;
    if (isSettled(now)) return now;
    for await (const followed of this.follow(id, { ...options, after: seq })) {
      onEvent?.(followed);
      if (followed.kind !== "event") continue;
      // The task may be ahead of the events; the listener still gets every event.
      if (followed.event.seq > now.seq) now = await this.read(id, options);
      if (isSettled(now) && followed.event.seq >= now.seq) return now;
    }
    throw new HeddleApiError("task.not-found", `task ${id} was deleted before it ended`);
  }

  #move(taskId: string, verb: string, body: unknown, call: Call | undefined): Promise<Task> {
    return this.#http.json("POST", at(taskId, verb), { ...call, body });
  }
}

function isSettled({ hasEnded, state }: Task): boolean {
  return hasEnded || state === "paused";
}

function at(...parts: readonly string[]): string {
  return `api/tasks/${parts.map(encodeURIComponent).join("/")}`;
}
