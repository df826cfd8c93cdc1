/** Streams of events. The handler sends them itself; it answers when the client has gone. */
import { HeddleError } from "@heddle/protocol";
import type { z } from "zod";
import { route, type HttpCall, type Route } from "./route.ts";
import { AllEventsQuery, EventsQuery, TaskParams, ThreadParams } from "@heddle/protocol/http";
import type { Followed } from "./sse/frames.ts";

async function follow(of: Followed, query: z.output<typeof EventsQuery>, call: HttpCall): Promise<void> {
  const { context, principal, response, lastEventId } = call;
  if (principal === undefined) throw new HeddleError("door.unauthorized", "a token is needed");
  await context.hub.follow({
    response,
    principal,
    ...of,
    after: cursorOf(query.after, lastEventId),
    wantsDeltas: query.deltas === true,
    isLive: query.follow !== false,
  });
}

/** A client that comes back says where it was by the header, whatever its address still says. */
function cursorOf(after: number | undefined, lastEventId: string | undefined): number {
  if (lastEventId === undefined || lastEventId === "") return after ?? 0;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw new HeddleError("cursor.expired", "Last-Event-ID is not a cursor of this server");
  return Number(lastEventId);
}

export const EVENT_ROUTES: readonly Route[] = [
  route({
    name: "followThread",
    method: "GET",
    path: "/api/threads/{threadId}/events",
    summary: "Every event of a thread after a cursor, then live; the id of a message is the thread's seq",
    scope: "read",
    params: ThreadParams,
    query: EventsQuery,
    answer: "stream",
    handle: ({ params, query }, call) => follow({ stream: params.threadId }, query, call),
  }),
  route({
    name: "followAll",
    method: "GET",
    path: "/api/events",
    summary:
      "Every event of all threads and tasks after a cursor, then live; the id of a message is the journal's position",
    scope: "read",
    query: AllEventsQuery,
    answer: "stream",
    handle: ({ query }, call) => follow({ stream: undefined, only: query.only }, query, call),
  }),
  route({
    name: "followTask",
    method: "GET",
    path: "/api/tasks/{taskId}/events",
    summary: "Every event of a task after a cursor, then live; the id of a message is the task's seq",
    scope: "read",
    params: TaskParams,
    query: EventsQuery,
    answer: "stream",
    handle: ({ params, query }, call) => follow({ stream: params.taskId }, query, call),
  }),
];
