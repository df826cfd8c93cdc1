/** Tasks for MCP clients: add, show, list. Whether one is done is decided by its checks, never by who works on it. */
import { defined, hasEnded, HeddleError, PLAIN, reasonOf, TASK_STATES, type TaskRecord } from "@heddle/protocol";
import { CreateTaskBody, TaskParams, type TasksQuery } from "@heddle/protocol/http";
import { z } from "zod";
import { createTask, listTasks } from "../http/task-routes.ts";
import { requireTask } from "../http/task-views.ts";
import { toolRow, type ToolContext, type ToolRow } from "./tool-row.ts";

const MAX_WAIT_SEC = 600;
const taskId = TaskParams.shape.taskId;

const CheckEnd = z.object({ name: z.string(), outcome: z.string(), message: z.string() });
const TaskState = z.object({
  taskId: z.string(),
  name: z.string(),
  state: z.enum(TASK_STATES).describe("Only verified means that its checks passed"),
  hasEnded: z.boolean().describe("It will not move again by itself"),
  workspace: z.string(),
  threadId: z.string().optional().describe("Where its agent works; read it with thread_read"),
  attempt: z.int().describe("0: never taken"),
  reason: z.string().optional().describe("Why it is paused, has failed or was cancelled"),
  waitsFor: z.string().optional(),
  claim: z.string().optional().describe("What its agent says of its work; claimed, not verified"),
  lastCheck: z.object({ passed: z.boolean(), results: z.array(CheckEnd) }).optional(),
  warnings: z.array(z.string()),
  hint: z.string().optional(),
});
type TaskState = z.output<typeof TaskState>;

const Add = z.strictObject({
  goal: z.string().min(1).optional().describe("Only a goal: nothing then checks the work"),
  spec: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('As in a task file: goal, and checks such as {"command": "npm test"} or {"file-exists": "NOTES.md"}'),
  workspace: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe("Where the spec names none; the server's own folder when absent"),
  thread: z.string().min(1).max(200).optional().describe("The thread to continue; a new one when absent"),
  clientId: z.string().min(1).max(200).optional().describe("Repeat a call with the same id and it is the same task"),
});

async function add({ goal, ...given }: z.output<typeof Add>, call: ToolContext): Promise<TaskState> {
  if ((goal === undefined) === (given.spec === undefined))
    throw new HeddleError("usage.invalid", "give either goal or spec: a goal alone, or a spec with goal and checks");
  const parsed = CreateTaskBody.safeParse({ ...given, ...(goal === undefined ? {} : { prompt: goal }) }, PLAIN);
  if (!parsed.success) throw new HeddleError("task.invalid", reasonOf(parsed.error));
  const { id, warnings } = await createTask(parsed.data, call, "mcp");
  return stateOf(await requireTask(call.context.heddle.journal, id), call, warnings);
}

const Show = z.strictObject({
  taskId,
  timeoutSec: z
    .number()
    .min(0)
    .max(MAX_WAIT_SEC)
    .optional()
    .describe("Waits this long, with progress, for it to end or to need its owner; 0 when absent"),
});

/** A client that cancels ends the wait, never the task. */
async function show({ taskId: id, timeoutSec = 0 }: z.output<typeof Show>, call: ToolContext): Promise<TaskState> {
  const { journal } = call.context.heddle;
  const after = await journal.version(id);
  const task = await requireTask(journal, id);
  if (timeoutSec === 0 || isAtRest(task)) return stateOf(task, call);
  const until = AbortSignal.any([call.signal, AbortSignal.timeout(Math.ceil(timeoutSec * 1000))]);
  for await (const { body } of journal.tail({ stream: id, after, signal: until })) {
    call.progress(body.type);
    if (isAtRest(await requireTask(journal, id))) break;
  }
  return stateOf(await requireTask(journal, id), call);
}

function isAtRest(task: TaskRecord): boolean {
  return hasEnded(task) || task.state === "paused";
}

const List = z.strictObject({
  state: z.array(z.enum(TASK_STATES)).min(1).optional().describe("Only these states"),
  workspace: z.string().min(1).max(4096).optional(),
  search: z.string().max(200).optional().describe("Text in the name"),
  cursor: z.string().max(500).optional().describe("`nextCursor` of the page before"),
  limit: z.int().min(1).max(100).optional().describe("25 when absent"),
});
const Listed = z.object({
  tasks: z.array(
    TaskState.pick({ taskId: true, name: true, state: true, workspace: true, threadId: true, reason: true }),
  ),
  nextCursor: z.string().nullable(),
});

async function list({ state, limit, ...query }: z.output<typeof List>, call: ToolContext) {
  const asked: z.output<typeof TasksQuery> = { ...query, ...defined({ state, limit }) };
  const { data, nextCursor } = await listTasks(asked, call);
  const tasks = data.map(({ id, name, state: is, workspace, threadId, reason }) => ({
    taskId: id,
    name,
    state: is,
    workspace,
    ...defined({ threadId, reason }),
  }));
  return { tasks, nextCursor };
}

function stateOf(task: TaskRecord, { context }: ToolContext, warnings: readonly string[] = []): TaskState {
  const { id, spec, state, threadId, attempt, reason, wait, claim, lastCheck } = task;
  const results = lastCheck?.results.map(({ name, outcome, message }) => ({ name, outcome, message }));
  const isWaiting = !isAtRest(task) && context.taskDoor.concurrency === 0;
  return {
    taskId: id,
    name: spec.name,
    state,
    hasEnded: hasEnded(task),
    workspace: spec.workspace,
    attempt,
    warnings: [...warnings],
    ...defined({
      threadId,
      reason,
      waitsFor: wait?.message,
      claim: claim?.summary,
      lastCheck: lastCheck === undefined ? undefined : { passed: lastCheck.passed, results: results ?? [] },
      hint: isWaiting
        ? "this server carries out no tasks; heddle watch or heddle serve does, in another process"
        : undefined,
    }),
  };
}

export const TASK_TOOLS: readonly ToolRow[] = [
  toolRow({
    name: "task_add",
    description:
      "Adds a task: an agent works towards its goal until its checks pass, and Heddle runs the checks itself. Returns at once; follow it with task_show.",
    scope: "write",
    input: Add,
    output: TaskState,
    handle: add,
  }),
  toolRow({
    name: "task_show",
    description: "How a task stands, and what its checks say; it can wait for the end.",
    scope: "read",
    input: Show,
    output: TaskState,
    handle: show,
  }),
  toolRow({
    name: "task_list",
    description: "Tasks, newest first.",
    scope: "read",
    input: List,
    output: Listed,
    handle: list,
  }),
];
