/**
 * The chat dialect over a JSON-RPC peer: what lives as long as the server (the hub, the accounts, the order of messages),
 * and its connections. A run belongs to the server, never to a connection.
 */
import { randomUUID } from "node:crypto";
import { createSerial, type Heddle, type TurnQueue } from "@heddle/agent";
import type { Accounts } from "@heddle/models/accounts";
import { HeddleError } from "@heddle/protocol";
import type { Dialect } from "../rpc/choose-dialect.ts";
import { contextWindowOf } from "../codex/handlers/models.ts";
import type { Peer } from "../rpc/peer.ts";
import type { Principal } from "../access/principals.ts";
import type { RunningTurns } from "../turns/running-turns.ts";
import type { SettingsResolver } from "../codex/settings.ts";
import type { ChatContext, SkillSwitch } from "./call.ts";
import { ChatConnection } from "./connection.ts";
import { ChatHub } from "./hub.ts";
import { callChatMethod } from "./methods.ts";

export interface ChatDoorOptions {
  readonly heddle: Heddle;
  readonly turns: RunningTurns;
  readonly queue: TurnQueue;
  readonly settings: SettingsResolver;
  readonly home: string;
  readonly cwd: string;
  readonly version: string;
  /** Absent: there are no accounts to look at. */
  readonly accounts?: (() => Promise<Accounts>) | undefined;
  /** Absent: which skills there are cannot be changed here. */
  readonly skills?: SkillSwitch | undefined;
  readonly log: (line: string) => void;
}

export class ChatDoor implements AsyncDisposable {
  readonly #context: ChatContext;
  readonly #connections = new Set<ChatConnection>();

  constructor(options: ChatDoorOptions) {
    const { heddle, log } = options;
    this.#context = {
      ...options,
      serverId: randomUUID(),
      hub: new ChatHub({ heddle, log, contextWindow: contextWindowOf }),
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

  /** Everybody has been told of everything that is stored now; within a moment, or not at all. */
  caughtUp(): Promise<void> {
    return this.#context.hub.caughtUp();
  }

  /** Lets go of everyone; the turns are the server's to end. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#context.hub[Symbol.asyncDispose]();
  }
}

function noAccounts(): Promise<Accounts> {
  return Promise.reject(new HeddleError("provider.configuration-required", "this server has no accounts to look at"));
}
