/** Turns, their items, and the questions they put. */
import type { Journal, ThreadRow } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";
import type { z } from "zod";
import { folderFor } from "../access/folders.ts";
import { pageOf } from "../rpc/paging.ts";
import { refuseLeavingSandbox, refuseFullAccess, refuseInputToFullAccess } from "../access/full-access.ts";
import { defined } from "@heddle/protocol";
import { route, type DoorCall, type DoorContext, type Route } from "./route.ts";
import {
  Accepted,
  AnswerBody,
  ApprovalList,
  ApprovalParams,
  DONE,
  EmptyBody,
  ItemPage,
  ItemsQuery,
  PageQuery,
  StartTurnBody,
  SteerBody,
  ThreadParams,
  Turn,
  TurnPage,
  TurnParams,
} from "@heddle/protocol/http";
import { limitOf } from "./thread-routes.ts";
import { openApprovals } from "./approval-views.ts";
import { briefEntry, itemEntries, itemsBefore } from "./item-views.ts";
import { requireThread, requireTurn, turnView, turnViews } from "./views.ts";

type Wanted = z.output<typeof StartTurnBody>;

export async function startTurn(threadId: string, wanted: Wanted, { context, principal, by, traceparent }: DoorCall) {
  const { heddle, turns, cwd } = context;
  const row = await requireThread(heddle.journal, threadId);
  if (row.isArchived) throw new HeddleError("usage.invalid", `thread ${threadId} is archived; unarchive it first`);
  const settings = await settingsOf(context, row, wanted);
  refuseFullAccess(principal, settings.sandboxMode);
  const { clientId, input, role, ceiling } = wanted;
  const workspace =
    wanted.workspace === undefined ? undefined : await folderFor({ principal, wanted: wanted.workspace, cwd });
  const start = {
    thread: threadId,
    input,
    settings,
    ...defined({ clientId, role, workspace, traceparent, keep: ceiling === undefined ? undefined : { ceiling } }),
  };
  const handle = await turns.begin(() => heddle.as(by).startTurn(start));
  return turnView(heddle.journal, await requireTurn(heddle.journal, threadId, handle.turnId));
}

/** What is not said is as the thread has it: as in the turn before, with what was changed since at any door. */
async function settingsOf({ heddle, settings }: DoorContext, row: ThreadRow, wanted: Wanted) {
  const { clientId, outputSchema, limits, runner, model, provider, effort, approvalPolicy, mode } = wanted;
  const { sandboxMode, envelope, ceiling } = wanted;
  const stored = await heddle.storedSettings(row.id, clientId);
  const patch = { runner, model, provider, effort, sandboxMode, envelope, ceiling, approvalPolicy, mode };
  const resolved = await settings.resolve({ workspace: stored.workspace, stored, patch });
  return { ...resolved, ...defined({ outputSchema, limits }) };
}

const MAX_ITEMS = 500;

function itemsPage(
  journal: Journal,
  threadId: string,
  { after, before, limit: asked = 25, turnId }: z.output<typeof ItemsQuery>,
): Promise<z.output<typeof ItemPage>> {
  const limit = Math.min(MAX_ITEMS, Math.max(1, asked));
  if (before === undefined) return itemEntries(journal, threadId, { after: after ?? 0, limit, turnId });
  if (after === undefined && turnId === undefined) return itemsBefore(journal, threadId, { before, limit });
  throw new HeddleError("usage.invalid", "before goes with neither after nor turnId; leave one out");
}

export const TURN_ROUTES: readonly Route[] = [
  route({
    name: "startTurn",
    on: "POST /api/threads/{threadId}/turns",
    summary: "Starts a turn; answered when the input is durable. The same clientId again is the same turn",
    scope: "write",
    params: ThreadParams,
    body: StartTurnBody,
    answer: Turn,
    status: 202,
    handle: ({ params, body }, call) => startTurn(params.threadId, body, call),
  }),
  route({
    name: "listTurns",
    on: "GET /api/threads/{threadId}/turns",
    summary: "Turns of a thread, newest first, with what each used and cost",
    scope: "read",
    params: ThreadParams,
    query: PageQuery,
    answer: TurnPage,
    async handle({ params: { threadId }, query: { cursor, limit } }, { context }) {
      const { journal } = context.heddle;
      await requireThread(journal, threadId);
      const rows = (await journal.threads.turns(threadId)).toReversed();
      const { data, nextCursor } = pageOf(rows, { cursor, limit: limitOf(limit) }, ({ id }) => id);
      return { data: await turnViews(journal, data), nextCursor };
    },
  }),
  route({
    name: "readTurn",
    on: "GET /api/threads/{threadId}/turns/{turnId}",
    summary: "One turn: status, failure, sandbox level, usage and cost",
    scope: "read",
    params: TurnParams,
    answer: Turn,
    async handle({ params: { threadId, turnId } }, { context: { heddle } }) {
      return turnView(heddle.journal, await requireTurn(heddle.journal, threadId, turnId));
    },
  }),
  route({
    name: "interruptTurn",
    on: "POST /api/threads/{threadId}/turns/{turnId}/interrupt",
    summary: "Interrupts a turn; its one terminal event follows within six seconds",
    scope: "write",
    params: TurnParams,
    body: EmptyBody,
    answer: Accepted,
    status: 202,
    async handle({ params: { threadId, turnId } }, { context: { heddle }, principal, by }) {
      await requireTurn(heddle.journal, threadId, turnId);
      const message = `interrupted by ${principal?.name ?? "nobody"}`;
      await heddle.as(by).interrupt(turnId, { code: "turn.interrupted", message });
      return DONE;
    },
  }),
  route({
    name: "steerTurn",
    on: "POST /api/threads/{threadId}/turns/{turnId}/steer",
    summary: "Adds input to a running turn, given to the agent at the next safe point",
    scope: "write",
    params: TurnParams,
    body: SteerBody,
    answer: Accepted,
    status: 202,
    async handle({ params: { threadId, turnId }, body: { input, role } }, { context: { heddle }, principal, by }) {
      await requireTurn(heddle.journal, threadId, turnId);
      await refuseInputToFullAccess(heddle, principal, threadId);
      await heddle.as(by).steer(turnId, input, { role });
      return DONE;
    },
  }),
  route({
    name: "listItems",
    on: "GET /api/threads/{threadId}/items",
    summary: "Items of a thread in the order they started, from the beginning, or with before from the end",
    scope: "read",
    params: ThreadParams,
    query: ItemsQuery,
    answer: ItemPage,
    async handle({ params: { threadId }, query }, { context: { heddle } }) {
      await requireThread(heddle.journal, threadId);
      const page = await itemsPage(heddle.journal, threadId, query);
      return query.brief === true ? { ...page, data: page.data.map(briefEntry) } : page;
    },
  }),
  route({
    name: "listOpenApprovals",
    on: "GET /api/approvals",
    summary: "Questions of all threads that wait for an answer, oldest first",
    scope: "read",
    answer: ApprovalList,
    handle: async (_given, call) => ({ data: await openApprovals(call) }),
  }),
  route({
    name: "listThreadApprovals",
    on: "GET /api/threads/{threadId}/approvals",
    summary: "Questions of a thread that wait for an answer, oldest first",
    scope: "read",
    params: ThreadParams,
    answer: ApprovalList,
    async handle({ params: { threadId } }, call) {
      await requireThread(call.context.heddle.journal, threadId);
      return { data: await openApprovals(call, threadId) };
    },
  }),
  route({
    name: "answerApproval",
    on: "POST /api/threads/{threadId}/approvals/{approvalId}",
    summary: "Answers a question; the first answer stands, from whatever door it comes",
    scope: "write",
    params: ApprovalParams,
    body: AnswerBody,
    answer: Accepted,
    async handle({ params: { threadId, approvalId }, body }, { context: { heddle }, principal, by }) {
      await requireThread(heddle.journal, threadId);
      await refuseLeavingSandbox(heddle, principal, { threadId, approvalId, decision: body.decision });
      await heddle.as(by).answer({ threadId, approvalId, ...body });
      return DONE;
    },
  }),
];
