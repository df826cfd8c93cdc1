/** Threads: list, create, read, name, archive, hop, fork, delete. */
import { changeSettings } from "@heddle/agent";
import { readTakeover } from "@heddle/agent/takeover";
import { ChatSettingsChange } from "@heddle/dialects/chat";
import type { ThreadRow } from "@heddle/journal";
import { defined, HeddleError, PLAIN, reasonOf } from "@heddle/protocol";
import type { z } from "zod";
import { folderFor } from "../access/folders.ts";
import { isOwner, refuseFullAccess } from "../access/full-access.ts";
import { pageOf } from "../rpc/paging.ts";
import { route, type DoorContext, type HttpContext, type Route } from "./route.ts";
import {
  Accepted,
  CreateThreadBody,
  DONE,
  EmptyBody,
  ForkThreadBody,
  HopAnswer,
  HopThreadBody,
  PatchThreadBody,
  ThreadDetail,
  ThreadDiff,
  ThreadDiffQuery,
  ThreadPage,
  ThreadParams,
  ThreadsQuery,
} from "@heddle/protocol/http";
import { threadDiff } from "./thread-diff.ts";
import { requireThread, requireTurn, threadView, threadViews } from "./views.ts";

/** How many threads are looked at; older ones are found by their id. */
const MAX_THREADS = 10_000;
const MAX_LIMIT = 100;
const ORIGIN = "http";

export function limitOf(limit: number | undefined): number {
  return Math.min(MAX_LIMIT, Math.max(1, limit ?? 25));
}

async function detail({ heddle, home }: HttpContext, threadId: string): Promise<z.output<typeof ThreadDetail>> {
  const row = await requireThread(heddle.journal, threadId);
  const takeover = await readTakeover(heddle.journal, threadId, home);
  return {
    ...(await threadView(heddle.journal, row)),
    seq: await heddle.journal.version(threadId),
    ...defined({ takeover }),
  };
}

function settingsFrom(given: Readonly<Record<string, unknown>>): z.output<typeof ChatSettingsChange> {
  const parsed = ChatSettingsChange.safeParse(given, PLAIN);
  if (parsed.success) return parsed.data;
  throw new HeddleError("usage.invalid", `settings.${reasonOf(parsed.error)}`);
}

function isWanted(row: ThreadRow, { archived = false, search = "", status }: z.output<typeof ThreadsQuery>): boolean {
  if (row.isArchived !== archived || row.isEphemeral) return false;
  if (status !== undefined && (row.lastTurnStatus === "open") !== (status === "running")) return false;
  return search === "" || `${row.name ?? ""}\n${row.preview ?? ""}`.toLowerCase().includes(search.toLowerCase());
}

export async function listThreads(
  query: z.output<typeof ThreadsQuery>,
  { heddle }: DoorContext,
): Promise<z.output<typeof ThreadPage>> {
  const { workspace, cursor } = query;
  const where = workspace === undefined ? {} : { workspace };
  const { threads } = heddle.journal;
  const rows =
    query.parent === undefined
      ? await threads.list({ ...where, limit: MAX_THREADS })
      : (await threads.childrenOf(query.parent, { limit: MAX_THREADS })).toReversed();
  const wanted = rows.filter((row) => isWanted(row, query));
  const { data, nextCursor } = pageOf(wanted, { cursor, limit: limitOf(query.limit) }, ({ id }) => id);
  return { data: await threadViews(heddle.journal, data), nextCursor };
}

export const THREAD_ROUTES: readonly Route[] = [
  route({
    name: "listThreads",
    on: "GET /api/threads",
    summary: "Threads, newest activity first",
    scope: "read",
    query: ThreadsQuery,
    answer: ThreadPage,
    handle: ({ query }, { context }) => listThreads(query, context),
  }),
  route({
    name: "createThread",
    on: "POST /api/threads",
    summary: "A new thread; it does nothing until a turn is started",
    scope: "write",
    body: CreateThreadBody,
    answer: ThreadDetail,
    status: 201,
    async handle({ body }, { context, principal, by }) {
      const workspace = await folderFor({ principal, wanted: body.workspace, cwd: context.cwd });
      const { name, clientId } = body;
      const request = { workspace, name };
      const threadId = await context.heddle
        .as(by)
        .createThread({ workspace, origin: ORIGIN }, { name, clientId, request });
      return detail(context, threadId);
    },
  }),
  route({
    name: "readThread",
    on: "GET /api/threads/{threadId}",
    summary: "One thread",
    scope: "read",
    params: ThreadParams,
    answer: ThreadDetail,
    handle: ({ params }, { context }) => detail(context, params.threadId),
  }),
  route({
    name: "patchThread",
    on: "PATCH /api/threads/{threadId}",
    summary: "Gives a thread a name, or its next turns other settings",
    scope: "write",
    params: ThreadParams,
    body: PatchThreadBody,
    answer: ThreadDetail,
    async handle({ params: { threadId }, body: { name, settings: given } }, { context, principal, by }) {
      const { journal } = context.heddle;
      await requireThread(journal, threadId);
      const settings = given === undefined ? undefined : settingsFrom(given);
      refuseFullAccess(principal, settings?.sandbox ?? undefined);
      if (name !== undefined) await context.heddle.as(by).nameThread({ threadId, name });
      if (settings !== undefined) await changeSettings(journal, threadId, { changes: settings, by });
      return detail(context, threadId);
    },
  }),
  ...([true, false] as const).map((isArchived) =>
    route({
      name: isArchived ? "archiveThread" : "unarchiveThread",
      on: `POST /api/threads/{threadId}/${isArchived ? "archive" : "unarchive"}`,
      summary: isArchived ? "Archives a thread; lists leave it out" : "Restores an archived thread",
      scope: "write",
      params: ThreadParams,
      body: EmptyBody,
      answer: ThreadDetail,
      async handle({ params: { threadId } }, { context, by }) {
        await requireThread(context.heddle.journal, threadId);
        await context.heddle.as(by).archiveThread({ threadId, isArchived });
        return detail(context, threadId);
      },
    }),
  ),
  route({
    name: "deleteThread",
    on: "DELETE /api/threads/{threadId}",
    summary: "Deletes the content of a thread for good; that it existed stays on record",
    scope: "admin",
    params: ThreadParams,
    answer: Accepted,
    async handle({ params: { threadId } }, { context, by }) {
      await requireThread(context.heddle.journal, threadId);
      await context.heddle.as(by).deleteThread({ threadId });
      return DONE;
    },
  }),
  route({
    name: "hopThread",
    on: "POST /api/threads/{threadId}/hop",
    summary: "Takes an idle thread into another envelope, by an edge for users",
    scope: "write",
    params: ThreadParams,
    body: HopThreadBody,
    answer: HopAnswer,
    async handle({ params: { threadId }, body }, { context, principal, by }) {
      await requireThread(context.heddle.journal, threadId);
      return context.heddle.as(by).hopThread({ ...body, threadId, staysInSandbox: !isOwner(principal) });
    },
  }),
  route({
    name: "diffThread",
    on: "GET /api/threads/{threadId}/diff",
    summary:
      "What the agent's edits changed, by file, as they were recorded; of a task on disk: GET /api/tasks/{taskId}/diff",
    scope: "read",
    params: ThreadParams,
    query: ThreadDiffQuery,
    answer: ThreadDiff,
    async handle({ params: { threadId }, query: { turnId } }, { context: { heddle } }) {
      await requireThread(heddle.journal, threadId);
      if (turnId !== undefined) await requireTurn(heddle.journal, threadId, turnId);
      return threadDiff(heddle.journal, threadId, { turnId });
    },
  }),
  route({
    name: "forkThread",
    on: "POST /api/threads/{threadId}/fork",
    summary: "A new thread with the history of this one",
    scope: "write",
    params: ThreadParams,
    body: ForkThreadBody,
    answer: ThreadDetail,
    status: 201,
    async handle({ params: { threadId }, body }, { context, principal, by }) {
      const { workspace: parents } = await requireThread(context.heddle.journal, threadId);
      const { workspace: wanted } = body;
      const workspace = wanted === undefined ? parents : await folderFor({ principal, wanted, cwd: context.cwd });
      const atTurn = body.atTurn === undefined ? {} : { atTurn: body.atTurn };
      const fork = { threadId, origin: ORIGIN, workspace, ...atTurn };
      return detail(context, await context.heddle.as(by).forkThread(fork));
    },
  }),
];
