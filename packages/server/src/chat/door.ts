/**
 * The chat dialect over a JSON-RPC peer: what lives as long as the server (the hub, the accounts, the order of messages),
 * and its connections. A run belongs to the server, never to a connection.
 */
import { randomUUID } from "node:crypto";
import { createSerial } from "@heddle/agent";
import type { Accounts } from "@heddle/models/accounts";
import { HeddleError } from "@heddle/protocol";
import type { Dialect } from "../rpc/choose-dialect.ts";
import { contextWindowOf } from "../codex/handlers/models.ts";
import type { FanOut } from "../followers/fan-out.ts";
import type { Peer } from "../rpc/peer.ts";
import type { Principal } from "../access/principals.ts";
import type { ChatContext } from "./call.ts";
import { ChatConnection } from "./connection.ts";
import { ChatHub } from "./hub.ts";
import { callChatMethod } from "./methods.ts";

export interface ChatDoorOptions extends Omit<ChatContext, "serverId" | "hub" | "sends" | "announce" | "accounts"> {
  readonly fanOut: () => Promise<FanOut>;
  /** Absent: this server has no accounts. */
  readonly accounts?: ChatContext["accounts"] | undefined;
}

export class ChatDoor implements Disposable {
  readonly #context: ChatContext;
  readonly #connections = new Set<ChatConnection>();

  constructor(options: ChatDoorOptions) {
    const { heddle, fanOut } = options;
    this.#context = {
      ...options,
      serverId: randomUUID(),
      hub: new ChatHub({ heddle, fanOut, contextWindow: contextWindowOf }),
      sends: createSerial(),
      accounts: options.accounts ?? noAccounts,
      announce: (topic, params) => {
        for (const connection of this.#connections) connection.notify(topic, params);
      },
    };
  }

  open(peer: Peer, principal: Principal): Dialect {
    const connection = new ChatConnection(peer, principal);
    const server = this.#context;
    this.#connections.add(connection);
    return {
      request: (method, params) => callChatMethod(method, params, { server, connection }),
      drained: () => connection.drained(),
      closed: () => {
        this.#connections.delete(connection);
        server.hub.leave(connection);
      },
    };
  }

  /** Lets go of everyone; the turns are the server's to end. */
  [Symbol.dispose](): void {
    for (const connection of this.#connections) connection.close();
    this.#context.hub[Symbol.dispose]();
  }
}

function noAccounts(): Promise<Accounts> {
  return Promise.reject(new HeddleError("provider.configuration-required", "this server has no accounts"));
}
