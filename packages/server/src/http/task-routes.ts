/** Tasks: list, create, read, change, archive, delete. They are run by the harness of this process, or of another. */
import { hasEnded, HeddleError, isHeddleError, TASK_STATES, type TaskRecord, type TaskState } from "@heddle/protocol";
import { contestRows, proposePlan, requireAllowedWorkspace, takeOrder, type Tasks } from "@heddle/tasks";
import type { Journal } from "@heddle/journal";
import type { z } from "zod";
import { folderFor } from "../access/folders.ts";
import { pageFrom, cursorPosition } from "../rpc/paging.ts";
import {
  Accepted,
  ClearedTasks,
  ClearTasksBody,
  CompleteTaskBody,
  CreatedTask,
  CreateTaskBody,
  DONE,
  EmptyBody,
  PatchTaskBody,
  PlanAnswer,
  PlanTaskBody,
  ReasonBody,
  RelieveTaskBody,
  ResumeTaskBody,
  RetryTaskBody,
  Task,
  TaskPage,
  TaskParams,
  TasksQuery,
} from "@heddle/protocol/http";
import { defined } from "@heddle/protocol";
import { route, type DoorCall, type HttpCall, type Route } from "./route.ts";
import { orderOf } from "./task-lint.ts";
import { tasksFor } from "./task-door.ts";
import { taskNow } from "./task-now.ts";
import { createdView, requireTask, taskView } from "./task-views.ts";
import { taskSummaries } from "./task-summaries.ts";
import { limitOf } from "./thread-routes.ts";

const PUT_AWAY: readonly TaskState[] = ["archived"];
const AT_HAND = TASK_STATES.filter((state) => state !== "archived");
/** Of one request; more of them are left to the next. */
const MAX_CLEARED = 1_000;

export async function listTasks(query: z.output<typeof TasksQuery>, { context: { heddle } }: DoorCall) {
  const { journal } = heddle;
  const { state, archived, workspace, label, parentId, search, cursor } = query;
  const limit = limitOf(query.limit);
  const after = cursorPosition(cursor)?.id;
  if (after !== undefined && (await journal.tasks.get(after)) === undefined) {
    throw new HeddleError("cursor.expired", "the task of this cursor no longer exists; start again without a cursor");
  }
  // Read before the page: a client that follows from there misses nothing.
  const position = await journal.position();
  const rows = await journal.tasks.page({
    states: state ?? (archived === true ? PUT_AWAY : AT_HAND),
    ...defined({ workspace, label, parentId, text: search, after }),
    limit: limit + 1,
  });
  const { data, nextCursor } = pageFrom(rows, limit, ({ id }) => id);
  return { data: await taskSummaries(journal, data), nextCursor, position };
}

export async function createTask(
  body: z.output<typeof CreateTaskBody>,
  call: DoorCall,
  door: "http" | "mcp" = "http",
): Promise<z.output<typeof CreatedTask>> {
  const { context, principal } = call;
  const { clientId } = body;
  const name = principal?.name ?? "";
  const { task, warnings } = await takeOrder(
    { ...context.taskDoor.door, defaultWorkspace: context.cwd, tasks: tasksFor(call) },
    {
      ...orderOf(body),
      source: { kind: door, ref: name },
      ...(clientId === undefined ? {} : { key: `${door}:${name}:${clientId}` }),
    },
  );
  return createdView(context.heddle.journal, { task, warnings });
}

/** Of a contest: how its contestants stand now. */
async function withRows(journal: Journal, task: TaskRecord): Promise<TaskRecord> {
  const { contest } = task;
  return contest === undefined ? task : { ...task, contest: { ...contest, rows: await contestRows(journal, task) } };
}

/** Only of what has ended; a task that is taken up again meanwhile stays. */
async function clearTasks(
  { states = [...TASK_STATES] }: z.output<typeof ClearTasksBody>,
  { context: { heddle, taskDoor }, by }: HttpCall,
) {
  const tasks = taskDoor.tasks.as(by);
  let removed = 0;
  for (let after: string | undefined; ;) {
    const page = await heddle.journal.tasks.page({ states, limit: 100, ...(after === undefined ? {} : { after }) });
    for (const task of page) {
      if (removed === MAX_CLEARED) return { removed, hasMore: true };
      if (hasEnded(task) && (await isRemoved(tasks, task.id))) removed += 1;
      else after = task.id;
    }
    if (page.length < 100) return { removed, hasMore: false };
  }
}

async function isRemoved(tasks: Tasks, taskId: string): Promise<boolean> {
  try {
    await tasks.remove(taskId);
    return true;
  } catch (error) {
    if (isHeddleError(error) && (error.code === "task.illegal" || error.code === "task.not-found")) return false;
    throw error;
  }
}

/** One move of a task; the machine refuses it with `task.illegal` where it is none. */
function move<B extends z.ZodType>(
  { name, summary, body }: { name: string; summary: string; body: B },
  change: (tasks: Tasks, taskId: string, given: z.output<B>, who: string) => Promise<TaskRecord>,
): Route {
  return route({
    name: `${name}Task`,
    on: `POST /api/tasks/{taskId}/${name}`,
    summary,
    scope: "write",
    params: TaskParams,
    body,
    answer: Task,
    async handle({ params: { taskId }, body: given }, call) {
      await requireTask(call.context.heddle.journal, taskId);
      return taskView(await change(tasksFor(call), taskId, given, call.principal?.name ?? "nobody"));
    },
  });
}

const cancel = (tasks: Tasks, taskId: string, { reason }: z.output<typeof ReasonBody>, who: string) =>
  tasks.cancel(taskId, reason ?? `cancelled by ${who}`);

/** A used-up budget is a state of the task, not of the caller: trying again does not help. */
async function resume(tasks: Tasks, taskId: string, { budget, input }: z.output<typeof ResumeTaskBody>) {
  try {
    return await tasks.resume(taskId, budget, { input });
  } catch (cause) {
    if (!isHeddleError(cause) || cause.code !== "limit.reached") throw cause;
    throw new HeddleError("task.illegal", cause.message, { cause, details: cause.details });
  }
}

const MOVES: readonly Route[] = [
  move(
    { name: "pause", summary: "Stops it until it is resumed; its turn is interrupted", body: ReasonBody },
    (tasks, taskId, { reason }, who) => tasks.pause(taskId, reason ?? `paused by ${who}`),
  ),
  move(
    {
      name: "resume",
      summary: "Resumes a paused task, with more of the budget that ran out, or with an answer for its agent",
      body: ResumeTaskBody,
    },
    resume,
  ),
  move({ name: "cancel", summary: "Ends it unfinished", body: ReasonBody }, cancel),
  move({ name: "abort", summary: "The same as cancel", body: ReasonBody }, cancel),
  move(
    { name: "retry", summary: "Another attempt at one that has ended", body: RetryTaskBody },
    (tasks, taskId, { reason, fresh }, who) =>
      tasks.retry(taskId, reason ?? `retried by ${who}`, { isFresh: fresh ?? false }),
  ),
  move(
    {
      name: "complete",
      summary: "Ends it as done by the user: claimed, never verified",
      body: CompleteTaskBody,
    },
    (tasks, taskId, { note }, who) => tasks.complete(taskId, note ?? `${who} marked it as done`),
  ),
  move(
    { name: "archive", summary: "Archives a task that has ended; its hooks are run first", body: EmptyBody },
    (tasks, taskId) => tasks.archive(taskId),
  ),
  move({ name: "unarchive", summary: "Restores an archived task", body: EmptyBody }, (tasks, taskId) =>
    tasks.archive(taskId, false),
  ),
  move({ name: "relieve", summary: "Acts on its stall", body: RelieveTaskBody }, (tasks, taskId, { action }) =>
    tasks.relieve(taskId, action),
  ),
];

export const TASK_ROUTES: readonly Route[] = [
  route({
    name: "listTasks",
    on: "GET /api/tasks",
    summary: "Tasks, newest first",
    scope: "read",
    query: TasksQuery,
    answer: TaskPage,
    handle: ({ query }, call) => listTasks(query, call),
  }),
  route({
    name: "createTask",
    on: "POST /api/tasks",
    summary: "A new task from a spec, a plan or a goal; durable when it is answered, run when its time comes",
    scope: "write",
    body: CreateTaskBody,
    answer: CreatedTask,
    status: 201,
    handle: ({ body }, call) => createTask(body, call),
  }),
  route({
    name: "planTask",
    on: "POST /api/tasks/plan",
    summary: "A model without tools proposes steps and checks; nothing is added",
    scope: "write",
    body: PlanTaskBody,
    answer: PlanAnswer,
    async handle({ body: { prompt, workspace: wanted, provider, model } }, { context, principal, by, response }) {
      const { heddle, settings, taskDoor, cwd } = context;
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const workspace = await folderFor({ principal, wanted, cwd });
      requireAllowedWorkspace(workspace, taskDoor.door.roots);
      const resolved = await settings.resolve({ workspace, patch: { provider, model } });
      return proposePlan({ heddle, by, prompt, workspace, settings: resolved, signal: gone.signal });
    },
  }),
  ...(["clear", "clear-completed"] as const).map((word) =>
    route({
      name: word === "clear" ? "clearTasks" : "clearCompletedTasks",
      on: `POST /api/tasks/${word}`,
      summary: "Deletes tasks that have ended",
      scope: "admin",
      body: ClearTasksBody,
      answer: ClearedTasks,
      handle: ({ body }, call) => clearTasks(body, call),
    }),
  ),
  route({
    name: "readTask",
    on: "GET /api/tasks/{taskId}",
    summary: "One task in full",
    scope: "read",
    params: TaskParams,
    answer: Task,
    async handle({ params: { taskId } }, { context: { heddle } }) {
      const task = await requireTask(heddle.journal, taskId);
      return { ...taskView(await withRows(heddle.journal, task)), ...(await taskNow(heddle.journal, task)) };
    },
  }),
  route({
    name: "patchTask",
    on: "PATCH /api/tasks/{taskId}",
    summary: "Gives a task another name, labels, priority or limits; what it is to do and its checks stay as ordered",
    scope: "write",
    params: TaskParams,
    body: PatchTaskBody,
    answer: Task,
    async handle({ params: { taskId }, body }, call) {
      await requireTask(call.context.heddle.journal, taskId);
      const { name, labels, priority, budget } = body;
      const limits = budget && defined(budget);
      return taskView(await tasksFor(call).edit(taskId, defined({ name, labels, priority, budget: limits })));
    },
  }),
  route({
    name: "deleteTask",
    on: "DELETE /api/tasks/{taskId}",
    summary: "Removes a task that has ended from every list",
    scope: "admin",
    params: TaskParams,
    answer: Accepted,
    async handle({ params: { taskId } }, { context: { heddle, taskDoor }, by }) {
      await requireTask(heddle.journal, taskId);
      await taskDoor.tasks.as(by).remove(taskId);
      return DONE;
    },
  }),
  ...MOVES,
];
