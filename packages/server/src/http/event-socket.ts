/**
 * The streams of event-routes.ts over a WebSocket, for clients that have no server-sent events: the same addresses, the
 * same cursors, each message one JSON object. What a client sends is not listened to. Live deltas are left to the others.
 */
import type { Journal } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";
import { AllEventsQuery, streamedEvent } from "@heddle/protocol/http";
import type { OnChannel } from "../transports/listener.ts";
import { isLeftOut, type Followed } from "./sse/frames.ts";
import { endOf, requireCursor } from "./sse/hub.ts";

export interface EventSocket {
  readonly journal: Journal;
  readonly of: Followed;
  readonly after: number;
  readonly log: (line: string) => void;
}

/** undefined: no events are told there. `token` is looked at by the guard. */
export async function eventSocketAt(
  url: URL,
  { journal, log }: Pick<EventSocket, "journal" | "log">,
): Promise<OnChannel | undefined> {
  const stream = streamOf(url.pathname);
  if (stream === undefined) return undefined;
  const { token: _token, ...query } = Object.fromEntries(url.searchParams);
  const parsed = AllEventsQuery.pick({ after: true, only: true }).safeParse(query);
  if (!parsed.success) throw new HeddleError("usage.invalid", "a WebSocket of events takes after and only");
  const { after = 0, only } = parsed.data;
  const of = { stream: stream === "" ? undefined : stream, only };
  await requireCursor(journal, of.stream, after);
  return followBySocket({ journal, of, after, log });
}

/** Empty: of all there is. */
function streamOf(pathname: string): string | undefined {
  if (pathname === "/api/events") return "";
  return /^\/api\/(?:threads|tasks)\/([\w-]{1,200})\/events$/.exec(pathname)?.[1];
}

function followBySocket({ journal, of, after, log }: EventSocket): OnChannel {
  return (channel) => {
    const gone = new AbortController();
    let drained = Promise.withResolvers<void>();
    const leave = (): void => {
      gone.abort();
      drained.resolve();
    };
    channel.open({
      onMessage: () => undefined,
      onTooLong: () => undefined,
      onDrain: () => drained.resolve(),
      onEnd: leave,
      onClose: leave,
    });
    const say = async (message: unknown): Promise<void> => {
      if (channel.send(JSON.stringify(message))) return;
      drained = Promise.withResolvers();
      if (!gone.signal.aborted) await drained.promise;
    };
    const follow = async (): Promise<void> => {
      const mark = await endOf(journal, of.stream);
      let isCaughtUp = after >= mark;
      if (isCaughtUp) await say({ event: "caughtUp", data: { after } });
      const from = { ...(of.stream === undefined ? {} : { stream: of.stream }), after, signal: gone.signal };
      for await (const event of journal.tail(from)) {
        const id = of.stream === undefined ? event.position : event.version;
        if (!isLeftOut(event, of)) await say({ id, data: streamedEvent(event) });
        if (!isCaughtUp && id >= mark) {
          isCaughtUp = true;
          await say({ event: "caughtUp", data: { after: id } });
        }
        if (of.stream !== undefined && /^(?:thread|task)\.deleted$/.test(event.body.type)) break;
      }
    };
    follow()
      .catch((error: unknown) => log(`a WebSocket of events ended early: ${String(error)}`))
      .finally(() => channel.close());
  };
}
