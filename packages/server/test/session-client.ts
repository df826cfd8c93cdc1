/** A client of sessions whose every answer has to be as its schema says: the schema and the server are one. */
import {
  SESSION_METHODS,
  SESSION_NOTIFICATIONS,
  type SessionAnswers,
  type SessionMethod,
  type SessionNotification,
  type SessionParams,
  type SessionSaid,
} from "@heddle/protocol/sessions";
import type { Role } from "../src/index.ts";
import type { ChatClient, Received } from "./chat-client.ts";
import type { ChatWorld } from "./chat-world.ts";

export interface SessionClient extends Disposable {
  readonly client: ChatClient;
  call<M extends SessionMethod>(method: M, params: SessionParams[M]): Promise<SessionAnswers[M]>;
  /** Code of the failure, and its message. */
  refused(method: string, params: unknown): Promise<string>;
  run(
    turnId: string,
    callId: string,
    command: string,
    more?: Readonly<Record<string, unknown>>,
  ): Promise<SessionAnswers["tool/call"]>;
  said<N extends SessionNotification>(method: N): readonly SessionSaid[N][];
  hears(method: SessionNotification): Promise<Received>;
}

export async function sessionClient(world: ChatWorld, role: Role = "owner"): Promise<SessionClient> {
  const client = await world.client(role);
  await client.call("initialize", { clientInfo: { name: "probe", version: "0" } });
  return sessionsOf(client);
}

export function sessionsOf(client: ChatClient): SessionClient {
  async function call<M extends SessionMethod>(method: M, params: SessionParams[M]): Promise<SessionAnswers[M]> {
    return SESSION_METHODS[method].result.parse(await client.call(method, params)) as SessionAnswers[M];
  }
  return {
    client,
    call,
    async refused(method, params) {
      const { error, result } = await client.ask(method, params);
      if (error === undefined) return `answered ${JSON.stringify(result)}`;
      const { code } = (error.data ?? {}) as { readonly code?: string };
      return `${code ?? error.code} ${error.message}`;
    },
    run: (turnId, callId, command, more = {}) =>
      call("tool/call", { turnId, callId, tool: "bash", arguments: { command, ...more } }),
    said<N extends SessionNotification>(method: N) {
      const notes = client.received.filter((received) => received.method === method);
      return notes.map(({ params }) => SESSION_NOTIFICATIONS[method].parse(params) as SessionSaid[N]);
    },
    hears: (method) => client.topic(method),
    [Symbol.dispose]: () => client[Symbol.dispose](),
  };
}

export function outputOf({ output }: Pick<SessionAnswers["tool/call"], "output">): string {
  return output.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("");
}
