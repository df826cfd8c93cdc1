/** What an owner does with the work of a task: looks at it, accepts it, puts the workspace back, has it judged again. */
import {
  AcceptTaskBody,
  EmptyBody,
  Task,
  TaskDiff,
  TaskDiffQuery,
  TaskParams,
  TaskVerification,
  UndoneTask,
  UndoTaskBody,
} from "@heddle/protocol/http";
import { HeddleError } from "@heddle/protocol";
import { withinLimit } from "../record/time-limit.ts";
import { takeTurn } from "../record/one-at-a-time.ts";
import { route, whileAsked, type Route } from "./route.ts";
import { tasksFor } from "./task-door.ts";
import { requireTask, taskView } from "./task-views.ts";

/** A run of all checks of a task through a door is given up after this. */
const CHECKS_MS = 20 * 60_000;

const tooLong = (what: string, taskId: string) => (): HeddleError =>
  new HeddleError(
    "evidence.timeout",
    `the ${what} took longer than ${CHECKS_MS / 60_000} minutes and was ended; its checks alone, without a limit: heddle verify ${taskId} --level 6`,
  );

export const TASK_WORK_ROUTES: readonly Route[] = [
  route({
    name: "diffTask",
    on: "GET /api/tasks/{taskId}/diff",
    summary: "What it changed against how its workspace was when it began, and what of that the verdict stands for",
    scope: "read",
    params: TaskParams,
    query: TaskDiffQuery,
    answer: TaskDiff,
    async handle({ params: { taskId }, query: { path, stat } }, call) {
      await requireTask(call.context.heddle.journal, taskId);
      const signal = whileAsked(call);
      const paths = path === undefined ? {} : { paths: [path] };
      return tasksFor(call).diff(taskId, { ...paths, isStat: stat ?? false, signal });
    },
  }),
  route({
    name: "acceptTask",
    on: "POST /api/tasks/{taskId}/accept",
    summary: "Accepts what was put to the owner as the work: judged again with it, or ended as claimed, never verified",
    scope: "write",
    params: TaskParams,
    body: AcceptTaskBody,
    answer: Task,
    async handle({ params: { taskId }, body: { note } }, call) {
      await requireTask(call.context.heddle.journal, taskId);
      return taskView(await tasksFor(call).accept(taskId, note));
    },
  }),
  route({
    name: "undoTask",
    on: "POST /api/tasks/{taskId}/undo",
    summary: "Puts its workspace back to how it was when the task began",
    scope: "write",
    params: TaskParams,
    body: UndoTaskBody,
    answer: UndoneTask,
    async handle({ params: { taskId }, body: { dryRun, force, retry } }, call) {
      await requireTask(call.context.heddle.journal, taskId);
      const who = call.principal?.name ?? "nobody";
      const { task, ...undone } = await tasksFor(call).undo(taskId, {
        isDryRun: dryRun ?? false,
        isForced: force ?? false,
        ...(retry === true ? { retry: { reason: `begun again from the baseline by ${who}` } } : {}),
        signal: whileAsked(call),
      });
      return { ...undone, task: taskView(task) };
    },
  }),
  route({
    name: "mergeTask",
    on: "POST /api/tasks/{taskId}/merge",
    summary:
      "Brings verified work of a worktree onto the branch that is checked out; judged again where that has changed",
    scope: "write",
    params: TaskParams,
    body: EmptyBody,
    answer: Task,
    async handle({ params: { taskId } }, call) {
      const { journal } = call.context.heddle;
      await requireTask(journal, taskId);
      using _turn = takeTurn(journal, "a merge of a task");
      const merge = (signal: AbortSignal) => tasksFor(call).merge(taskId, { signal });
      return taskView(await withinLimit(whileAsked(call), { ms: CHECKS_MS, refuse: tooLong("merge", taskId) }, merge));
    },
  }),
  route({
    name: "verifyTask",
    on: "POST /api/tasks/{taskId}/verify",
    summary: "Judges it again from what was kept of it, and says whether the verdict is the same; nothing is stored",
    scope: "write",
    params: TaskParams,
    body: EmptyBody,
    answer: TaskVerification,
    async handle({ params: { taskId } }, call) {
      const { journal } = call.context.heddle;
      await requireTask(journal, taskId);
      using _turn = takeTurn(journal, "a verification of a task");
      const verify = (signal: AbortSignal) => tasksFor(call).verify(taskId, { signal });
      return await withinLimit(whileAsked(call), { ms: CHECKS_MS, refuse: tooLong("verification", taskId) }, verify);
    },
  }),
];
