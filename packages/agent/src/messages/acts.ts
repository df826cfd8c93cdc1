/** What users and doors do with agents: name them, say whether messages wake them, send and ask. All with their author. */
import type { Journal } from "@heddle/journal";
import { HeddleError, type Author } from "@heddle/protocol";
import { findAgent, nameAgent, type NameAgent } from "../agents/names.ts";
import { changeSettings } from "../threads/changes.ts";
import type { MessageTurns } from "./message-turns.ts";
import { WAKE_KEY, type MessageRules } from "./rules.ts";
import { sendMessage, type Sending, type Sent } from "./send.ts";
import { answerMessage, awaitEnd, type Answering, type StandingEnd } from "./settle.ts";

export interface WakeAgent {
  readonly threadId: string;
  /** null: as the configuration says. */
  readonly wakes: boolean | null;
}

export type Asking = Sending & { readonly timeoutMs: number };
export type Asked = StandingEnd & Pick<Sent, "messageId" | "threadId">;

export interface MessageActs {
  name(name: NameAgent): Promise<void>;
  wake(wake: WakeAgent): Promise<void>;
  /** Durable when it resolves; with a time limit it is a question, whose end is not waited for. */
  send(sending: Sending): Promise<Sent>;
  /** Until the question has its end, at the latest by its deadline. */
  ask(asking: Asking, signal: AbortSignal): Promise<Asked>;
  /** For the agent of a thread that was asked. */
  answer(answering: Omit<Answering, "by">): Promise<void>;
}

export interface MessageEngine {
  readonly journal: Journal;
  readonly messageRules: MessageRules;
  /** Where nobody else lets messages start turns: of a process that waits for an answer itself. */
  readonly turns: MessageTurns | undefined;
}

export function messageActs({ journal, messageRules, turns }: MessageEngine, by: Author): MessageActs {
  const send = (sending: Sending): Promise<Sent> => sendMessage(journal, { ...sending, by }, messageRules);
  return {
    name: (name) => nameAgent(journal, { ...name, by }),
    async wake({ threadId, wakes }) {
      const { id, isArchived } = await findAgent(journal, threadId);
      if (isArchived) throw new HeddleError("agent.gone", `thread ${id} is archived`);
      await changeSettings(journal, id, { changes: { [WAKE_KEY]: wakes }, by });
    },
    send,
    async ask(asking, signal) {
      const { messageId, threadId } = await send(asking);
      turns?.look(threadId);
      return { messageId, threadId, ...(await awaitEnd(journal, messageId, signal)) };
    },
    answer: (answering) => answerMessage(journal, { ...answering, by }),
  };
}
