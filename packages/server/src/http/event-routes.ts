/** Streams of events. The handler sends them itself, and returns when the client has disconnected. */
import { HeddleError } from "@heddle/protocol";
import type { z } from "zod";
import { route, type HttpCall, type Route } from "./route.ts";
import { AllEventsQuery, EventsQuery, TaskParams, ThreadParams } from "@heddle/protocol/http";
import type { OnChannel } from "../transports/server.ts";
import type { Principal } from "../access/principals.ts";
import type { EventHub, Follow } from "./events/hub.ts";
import { socketOutput, sseOutput } from "./events/outputs.ts";

type EventsQuery = z.output<typeof AllEventsQuery>;

async function follow(stream: string | undefined, query: EventsQuery, call: HttpCall): Promise<void> {
  const { context, principal, response, lastEventId } = call;
  if (principal === undefined) throw new HeddleError("door.unauthorized", "a token is needed");
  const after = cursorOf(query.after, lastEventId);
  const serve = await context.hub.admit(followOf({ stream, principal }, { ...query, after }));
  await serve(sseOutput(response));
}

/** A client that reconnects names its cursor in the header, whatever its URL still says. */
function cursorOf(after: number | undefined, lastEventId: string | undefined): number | undefined {
  if (lastEventId === undefined || lastEventId === "") return after;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw new HeddleError("cursor.expired", "Last-Event-ID is not a cursor of this server");
  return Number(lastEventId);
}

function followOf(
  who: Pick<Follow, "stream" | "principal">,
  { after = 0, deltas = false, follow: isLive = true, only, types, streams }: EventsQuery,
): Follow {
  return { ...who, after, wantsDeltas: deltas, isLive, only, types: setOf(types), streams: setOf(streams) };
}

function setOf(names: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return names === undefined ? undefined : new Set(names);
}

/** The same streams over a WebSocket, for clients without server-sent events; undefined: the URL names no stream. */
export async function eventSocketAt(url: URL, principal: Principal, hub: EventHub): Promise<OnChannel | undefined> {
  const [, stream] = /^\/api\/(?:(?:threads|tasks)\/([\w-]{1,200})\/)?events$/.exec(url.pathname) ?? [undefined];
  if (stream === undefined && url.pathname !== "/api/events") return undefined;
  // The guard has checked the token.
  const { token: _token, ...query } = Object.fromEntries(url.searchParams);
  const parsed = AllEventsQuery.safeParse(query);
  if (!parsed.success)
    throw new HeddleError(
      "usage.invalid",
      "a WebSocket of events takes after, only, types, streams, deltas and follow",
    );
  const serve = await hub.admit(followOf({ stream, principal }, parsed.data));
  return (channel) => void serve(socketOutput(channel));
}

export const EVENT_ROUTES: readonly Route[] = [
  route({
    name: "followThread",
    on: "GET /api/threads/{threadId}/events",
    summary: "Every event of a thread after a cursor, then live; the id of a message is the thread's seq",
    scope: "read",
    params: ThreadParams,
    query: EventsQuery,
    answer: "stream",
    handle: ({ params, query }, call) => follow(params.threadId, query, call),
  }),
  route({
    name: "followAll",
    on: "GET /api/events",
    summary:
      "Every event of all threads and tasks after a cursor, then live; the id of a message is the journal's position",
    scope: "read",
    query: AllEventsQuery,
    answer: "stream",
    handle: ({ query }, call) => follow(undefined, query, call),
  }),
  route({
    name: "followTask",
    on: "GET /api/tasks/{taskId}/events",
    summary: "Every event of a task after a cursor, then live; the id of a message is the task's seq",
    scope: "read",
    params: TaskParams,
    query: EventsQuery,
    answer: "stream",
    handle: ({ params, query }, call) => follow(params.taskId, query, call),
  }),
];
