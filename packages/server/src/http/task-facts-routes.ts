/** What is known about tasks and what they took: logs, attempts, checks, stalls, the ledger, and all at a glance. */
import { readdir } from "node:fs/promises";
import type { Journal, UsageKey, UsageRow } from "@heddle/journal";
import { TASK_STATES } from "@heddle/protocol";
import { requireAllowedWorkspace } from "@heddle/tasks";
import type { z } from "zod";
import {
  AttemptList,
  BrowseQuery,
  CheckRunList,
  ConfigAnswer,
  type ConfigSummary,
  EventPage,
  FolderList,
  StallList,
  StateAnswer,
  streamedEvent,
  TaskLogQuery,
  TaskParams,
  UsagePage,
  UsageQuery,
  WorkspaceList,
} from "@heddle/protocol/http";
import { folderFor } from "../access/folders.ts";
import { invalidCursor } from "../rpc/paging.ts";
import { route, type HttpContext, type Route } from "./route.ts";
import type { TaskDoorOptions } from "./task-door.ts";
import { attemptsOf, checkRuns, requireTask, sinkEntries } from "./task-views.ts";
import { taskSummaries } from "./task-summaries.ts";
import { turnConfig } from "./turn-config.ts";
import { limitOf } from "./thread-routes.ts";

const MAX_STALLS = 100;
const MAX_FOLDERS = 200;
const MAX_WORKSPACES = 20;
const MAX_STATE_TASKS = 50;
const MAX_MODELS = 100;

async function stalls(journal: Journal): Promise<z.output<typeof StallList>["data"]> {
  const stalled = await journal.tasks.page({ states: ["stalled"], limit: MAX_STALLS });
  const summaries = await taskSummaries(journal, stalled);
  return stalled.flatMap(({ stall }, at) => {
    const summary = summaries[at];
    return stall === undefined || summary === undefined ? [] : [{ ...summary, stall }];
  });
}

async function usagePage(query: z.output<typeof UsageQuery>, { usage }: Journal) {
  const { by = ["day"], from, to, cursor, limit: asked, ...only } = query;
  const limit = limitOf(asked);
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) throw invalidCursor(cursor);
  const skip = Number(cursor ?? 0);
  const rows = await usage.rows({ by, from, to, only: defined(only), limit: limit + 1, skip });
  return {
    data: rows.slice(0, limit).map(usageView),
    nextCursor: rows.length > limit ? String(skip + limit) : null,
  };
}

function defined(only: Partial<Record<UsageKey, string | undefined>>): Partial<Record<UsageKey, string>> {
  return Object.fromEntries(Object.entries(only).filter(([, value]) => value !== undefined));
}

function usageView({ of, requests, unpriced, usage, costUsd }: UsageRow) {
  return { of: { ...of }, requests, unpriced, usage, costUsd };
}

function configSummary({
  door,
  folders,
  sinks,
  publicUrl,
  concurrency,
}: TaskDoorOptions): z.output<typeof ConfigSummary> {
  return {
    carriesOutTasks: concurrency > 0,
    concurrency,
    workspaceRoots: door.roots === undefined ? null : [...door.roots],
    inboxes: [...folders],
    sinks: sinks.map(({ name, kind, target, events }) => ({ name, kind, target, events: [...events] })),
    webhooks: door.sources.map(({ name, kind, secret }) => ({ name, kind, isSigned: secret !== undefined })),
    ...(publicUrl === undefined ? {} : { publicUrl }),
  };
}

async function stateOf({ heddle, taskDoor, version, dayLimits }: HttpContext): Promise<z.output<typeof StateAnswer>> {
  const { journal } = heddle;
  // Read first: a client that follows from there misses nothing.
  const position = await journal.position();
  const now = Date.now();
  const today = new Date(now).toISOString().slice(0, 10);
  const models = async (from: string | undefined) =>
    (await journal.usage.rows({ by: ["provider", "model"], from, limit: MAX_MODELS })).map(usageView);
  const states = TASK_STATES.filter((state) => state !== "archived");
  return {
    version,
    now,
    position,
    counts: await journal.tasks.counts(),
    tasks: await taskSummaries(journal, await journal.tasks.page({ states, limit: MAX_STATE_TASKS })),
    stalls: await stalls(journal),
    approvals: (await journal.threads.openApprovals()).length,
    sinks: await sinkEntries(journal, taskDoor.sinks),
    usage: {
      today: await models(today),
      month: await models(`${today.slice(0, 7)}-01`),
      total: await models(undefined),
    },
    dayLimits,
    config: configSummary(taskDoor),
  };
}

export const TASK_FACTS_ROUTES: readonly Route[] = [
  route({
    name: "readTaskLog",
    on: "GET /api/tasks/{taskId}/log",
    summary: "What happened to a task, oldest first",
    scope: "read",
    params: TaskParams,
    query: TaskLogQuery,
    answer: EventPage,
    async handle({ params: { taskId }, query: { after = 0, limit } }, { context: { heddle } }) {
      await requireTask(heddle.journal, taskId);
      const wanted = limitOf(limit);
      const events = await heddle.journal.read({ stream: taskId, after, limit: wanted + 1 });
      const data = events.slice(0, wanted).map(streamedEvent);
      return { data, nextAfter: events.length > wanted ? (data.at(-1)?.seq ?? null) : null };
    },
  }),
  route({
    name: "listAttempts",
    on: "GET /api/tasks/{taskId}/attempts",
    summary: "Every attempt, with each turn that was begun and why",
    scope: "read",
    params: TaskParams,
    answer: AttemptList,
    async handle({ params: { taskId } }, { context: { heddle } }) {
      await requireTask(heddle.journal, taskId);
      return { data: await attemptsOf(heddle.journal, taskId) };
    },
  }),
  route({
    name: "listChecks",
    on: "GET /api/tasks/{taskId}/checks",
    summary: "Every run of the checks, with its evidence",
    scope: "read",
    params: TaskParams,
    answer: CheckRunList,
    async handle({ params: { taskId } }, { context: { heddle } }) {
      await requireTask(heddle.journal, taskId);
      return { data: await checkRuns(heddle.journal, taskId) };
    },
  }),
  route({
    name: "listStalls",
    on: "GET /api/stalls",
    summary: "Stalled tasks, and what they wait for",
    scope: "read",
    answer: StallList,
    handle: async (_given, { context: { heddle } }) => ({ data: await stalls(heddle.journal) }),
  }),
  route({
    name: "readUsage",
    on: "GET /api/usage",
    summary: "The ledger: token usage and cost, each answer counted once on its day",
    scope: "read",
    query: UsageQuery,
    answer: UsagePage,
    handle: ({ query }, { context: { heddle } }) => usagePage(query, heddle.journal),
  }),
  route({
    name: "readConfig",
    on: "GET /api/config",
    summary: "How turns, tasks, inboxes, sinks and webhooks are set up, and where each setting is from; never a secret",
    scope: "read",
    answer: ConfigAnswer,
    handle: async (_given, call) => ({ ...configSummary(call.context.taskDoor), ...(await turnConfig(call)) }),
  }),
  route({
    name: "readState",
    on: "GET /api/state",
    summary: "Everything at a glance, and the cursor to follow from",
    scope: "read",
    answer: StateAnswer,
    handle: (_given, { context }) => stateOf(context),
  }),
  route({
    name: "listWorkspaces",
    on: "GET /api/recent-workspaces",
    summary: "Folders that threads worked in last",
    scope: "read",
    answer: WorkspaceList,
    async handle(_given, { context: { heddle } }) {
      const threads = await heddle.journal.threads.list({ limit: 1_000 });
      return { data: [...new Set(threads.map(({ workspace }) => workspace))].slice(0, MAX_WORKSPACES) };
    },
  }),
  route({
    name: "browseFolders",
    on: "GET /api/browse",
    summary: "Folders in a folder that you may work in",
    scope: "write",
    query: BrowseQuery,
    answer: FolderList,
    async handle({ query: { path: wanted } }, { context: { taskDoor, cwd }, principal }) {
      const path = await folderFor({ principal, wanted, cwd });
      requireAllowedWorkspace(path, taskDoor.door.roots);
      const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
      const folders = entries
        .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
        .map(({ name }) => name)
        .toSorted();
      return { path, folders: folders.slice(0, MAX_FOLDERS), isCut: folders.length > MAX_FOLDERS };
    },
  }),
];
