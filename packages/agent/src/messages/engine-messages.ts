/** Messages as the engine knows them: its rules, the calls of doors, and what bounds a turn. Everything else is loaded by use. */
import type { Author } from "@heddle/protocol";
import type { Heddle, HeddleOptions, StartTurn } from "../heddle.ts";
import type { MessageActs } from "./acts.ts";
import type { MessageBound } from "./bound.ts";
import type { MessageTurns } from "./message-turns.ts";
import { NO_MESSAGE_RULES, type MessageRules } from "./rules.ts";

export interface EngineMessages extends AsyncDisposable {
  readonly rules: MessageRules;
  readonly acts: (by: Author) => Promise<MessageActs>;
  /** Names are free and messages still wait, before anything is opened for a turn. undefined: no message starts it. */
  boundOf(threadId: string, asked: Pick<StartTurn, "agentName" | "messages">): Promise<MessageBound | undefined>;
}

export function engineMessages(heddle: Heddle, options: HeddleOptions): EngineMessages {
  const { journal } = heddle;
  const { messages: rules = NO_MESSAGE_RULES, isUnattended, log = () => undefined } = options;
  let opened: Promise<MessageTurns> | undefined;

  /** A server follows messages by itself; any other process begins what it waits for. */
  async function turns(): Promise<MessageTurns | undefined> {
    if (!isUnattended) return undefined;
    opened ??= import("./message-turns.ts").then(({ MessageTurns: Turns }) => new Turns({ heddle, log }));
    return opened;
  }

  return {
    rules,
    async acts(by) {
      return (await import("./acts.ts")).messageActs({ journal, messageRules: rules, turns: await turns() }, by);
    },
    async boundOf(threadId, { agentName: name, messages: ids }) {
      if (name !== undefined) await (await import("../agents/names.ts")).requireFree(journal, { threadId, name });
      if (ids === undefined) return undefined;
      return (await import("./bound.ts")).boundOf(journal, { threadId, ids, rules });
    },
    async [Symbol.asyncDispose]() {
      await (await opened)?.[Symbol.asyncDispose]();
    },
  };
}
