/** Orders that become tasks, and notifications about tasks. */
import { HeddleError } from "@heddle/protocol";
import { readOrderFile, redeliver, takeOrder, takeWebhook, testSink } from "@heddle/tasks";
import type { z } from "zod";
import {
  CreatedTask,
  EmptyBody,
  InboxBody,
  Notification,
  NotificationPage,
  NotificationParams,
  NotificationsQuery,
  SinkList,
  SinkParams,
  SinkTest,
  SourceList,
  SourceParams,
  WebhookAnswer,
} from "@heddle/protocol/http";
import { pageFrom, cursorPosition } from "../rpc/paging.ts";
import { defined } from "@heddle/protocol";
import { route, type HttpCall, type Route } from "./route.ts";
import { tasksFor } from "./task-door.ts";
import { createdView, notificationView, sinkEntries } from "./task-views.ts";
import { limitOf } from "./thread-routes.ts";

const ENDINGS = { markdown: "md", yaml: "yaml", json: "json" } as const;

/** As for a file in an inbox, within the rights of the caller. */
async function takeFromInbox(body: z.output<typeof InboxBody>, call: HttpCall) {
  const { context, principal } = call;
  const { text, path, format = "markdown", workspace, thread, clientId } = body;
  const written =
    path === undefined
      ? { file: `order.${ENDINGS[format]}`, text: text ?? "" }
      : await readOrderFile(path, context.taskDoor.folders);
  const name = principal?.name ?? "";
  const { task, warnings } = await takeOrder(
    { ...context.taskDoor.door, tasks: tasksFor(call) },
    {
      ...written,
      source: { kind: "http", ref: name },
      workspace,
      thread,
      ...(clientId === undefined ? {} : { key: `inbox:${name}:${clientId}` }),
    },
  );
  return createdView(context.heddle.journal, { task, warnings });
}

export const ORDER_ROUTES: readonly Route[] = [
  ...(["/api/inbox", "/api/inbox/trigger"] as const).map((path) =>
    route({
      name: path === "/api/inbox" ? "sendOrder" : "triggerInbox",
      on: `POST ${path}`,
      summary: "An order as text, or the path of a file in an inbox, becomes a task",
      scope: "write",
      body: InboxBody,
      answer: CreatedTask,
      status: 201,
      handle: ({ body }, call) => takeFromInbox(body, call),
    }),
  ),
  route({
    name: "listSources",
    on: "GET /api/webhooks/sources",
    summary: "Programs elsewhere that may send orders; never a secret",
    scope: "read",
    answer: SourceList,
    handle: (_given, { context: { taskDoor } }) =>
      Promise.resolve({
        data: taskDoor.door.sources.map(({ name, kind, secret }) => ({ name, kind, isSigned: secret !== undefined })),
      }),
  }),
  route({
    name: "takeWebhook",
    on: "POST /api/webhooks/{source}",
    summary: "A program elsewhere sends an order; the signature of its source, or a token, says who it is",
    scope: "signed",
    params: SourceParams,
    answer: WebhookAnswer,
    status: 202,
    async handle({ params: { source } }, call) {
      const { context, principal, headers, bytes } = call;
      // Without a token it is its signature that counts, and what the owner set up for it.
      const { door, tasks: all } = context.taskDoor;
      const tasks = principal === undefined ? all.as(`user:door:webhook.${source}`) : tasksFor(call);
      const outcome = await takeWebhook(
        { ...door, tasks },
        { source, headers, body: bytes, isTrusted: principal !== undefined },
      );
      return outcome.kind === "taken"
        ? { outcome: "taken" as const, taskId: outcome.task.id }
        : { outcome: "ignored" as const, reason: outcome.reason };
    },
  }),
  route({
    name: "listNotifications",
    on: "GET /api/notifications",
    summary: "Notifications of all sinks, newest first; state=dead is what could not be delivered",
    scope: "read",
    query: NotificationsQuery,
    answer: NotificationPage,
    async handle({ query: { sink, state, taskId, cursor, limit: asked } }, { context: { heddle } }) {
      const limit = limitOf(asked);
      const after = cursorPosition(cursor)?.id;
      const rows = await heddle.journal.notifications.page({
        ...defined({ sink, state, taskId, after }),
        limit: limit + 1,
      });
      const { data, nextCursor } = pageFrom(rows, limit, ({ id }) => id);
      return { data: data.map(notificationView), nextCursor };
    },
  }),
  route({
    name: "redeliverNotification",
    on: "POST /api/notifications/{notificationId}/redeliver",
    summary: "Puts a notification back into its queue",
    scope: "write",
    params: NotificationParams,
    body: EmptyBody,
    answer: Notification,
    async handle({ params: { notificationId } }, { context: { heddle }, by }) {
      const { journal } = heddle;
      if ((await journal.notifications.get(notificationId)) === undefined) {
        throw new HeddleError("door.not-found", `there is no notification ${notificationId}`);
      }
      return notificationView(await redeliver(journal, { id: notificationId, by }));
    },
  }),
  route({
    name: "listSinks",
    on: "GET /api/sinks",
    summary: "The notification sinks, and how much was delivered to each",
    scope: "read",
    answer: SinkList,
    handle: async (_given, { context: { heddle, taskDoor } }) => ({
      data: await sinkEntries(heddle.journal, taskDoor.sinks),
    }),
  }),
  route({
    name: "testSink",
    on: "POST /api/sinks/{sink}/test",
    summary: "Sends a sink one test, now; nothing is stored",
    scope: "write",
    params: SinkParams,
    body: EmptyBody,
    answer: SinkTest,
    async handle({ params: { sink: name } }, { context: { taskDoor } }) {
      const sink = taskDoor.sinks.find((one) => one.name === name);
      if (sink === undefined) throw new HeddleError("door.not-found", `there is no sink ${name}`);
      const { kind: outcome, status, message } = await testSink(sink);
      return { outcome, message, ...(status === undefined ? {} : { status }) };
    },
  }),
];
