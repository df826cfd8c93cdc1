/** The events of chats: asked for by number, or told as they come. */
import { HeddleError } from "@heddle/protocol";
import type { ChatEvent, ChatResultOf } from "@heddle/dialects/chat";
import type { ChatHandler } from "../call.ts";
import type { ChatConnection } from "../connection.ts";
import type { Past } from "../read-log.ts";
import { requireChat } from "../chats.ts";

const DEFAULT_LIMIT = 200;
/** More at once is asked for in pages. */
const MAX_REPLAYED = 5_000;

export const list: ChatHandler<"chat.events.list"> = async ({ chat_id, after_seq, limit }, { server }) => {
  const { id } = await requireChat(server, { chat_id });
  const { events, log } = await server.hub.past(id, after_seq);
  const page = events.slice(0, limit ?? DEFAULT_LIMIT);
  return { result: { events: page.map(listed), last_seq: log.lastSeq, oldest_seq: 1 } };
};

/** As it is told, with its topic beside it. */
export function listed({ topic, params }: ChatEvent): ChatResultOf<"chat.events.list">["events"][number] {
  return { topic, ...params };
}

export const subscribe: ChatHandler<"events.subscribe"> = async ({ topic, after = {} }, { server, connection }) => {
  for (const chatId of Object.keys(after)) await requireChat(server, { chat_id: chatId });
  const begun: { id?: string | undefined; held?: Disposable } = {};
  const past = await server.hub.join(connection, after, () => {
    begun.held = connection.hold();
    begun.id = connection.subscribe(topic);
  });
  if (begun.id === undefined) {
    begun.held?.[Symbol.dispose]();
    throw new HeddleError("limit.reached", "a connection has at most 100 subscriptions");
  }
  return {
    result: { subscription_id: begun.id },
    after() {
      for (const [chatId, missed] of past) replay(connection, topic, chatId, missed);
      begun.held?.[Symbol.dispose]();
    },
  };
};

function replay(connection: ChatConnection, topic: string, chatId: string, { events, log }: Past): void {
  if (events.length <= MAX_REPLAYED) connection.replay(topic, events);
  else connection.resync(chatId, log.lastSeq, "too many events were missed to send them at once");
}

export const unsubscribe: ChatHandler<"events.unsubscribe"> = ({ subscription_id }, { server, connection }) => {
  if (!connection.unsubscribe(subscription_id)) {
    throw new HeddleError("usage.invalid", `subscription_id: no subscription ${subscription_id.slice(0, 100)}`);
  }
  if (!connection.isListening) server.hub.leave(connection);
  return Promise.resolve({ result: { ok: true } });
};
