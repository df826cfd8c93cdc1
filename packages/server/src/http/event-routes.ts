/** Streams of events. The handler sends them itself; it answers when the client has gone. */
import { HeddleError } from "@heddle/protocol";
import type { z } from "zod";
import { route, type HttpCall, type Route } from "./route.ts";
import { EventsQuery, ThreadParams } from "@heddle/protocol/http";

async function follow(
  threadId: string | undefined,
  query: z.output<typeof EventsQuery>,
  call: HttpCall,
): Promise<void> {
  const { context, principal, response, lastEventId } = call;
  if (principal === undefined) throw new HeddleError("door.unauthorized", "show your token");
  await context.hub.follow({
    response,
    principal,
    threadId,
    after: cursorOf(query.after, lastEventId),
    wantsDeltas: query.deltas === true,
    isLive: query.follow !== false,
  });
}

/** A client that comes back says where it was by the header, whatever its address still says. */
function cursorOf(after: number | undefined, lastEventId: string | undefined): number {
  if (lastEventId === undefined || lastEventId === "") return after ?? 0;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw new HeddleError("cursor.expired", "Last-Event-ID is no cursor of this server");
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
    handle: ({ params, query }, call) => follow(params.threadId, query, call),
  }),
  route({
    name: "followAll",
    method: "GET",
    path: "/api/events",
    summary: "Every event of all threads after a cursor, then live; the id of a message is the journal's position",
    scope: "read",
    query: EventsQuery,
    answer: "stream",
    handle: ({ query }, call) => follow(undefined, query, call),
  }),
];
