/** The other agents, for the tools of one turn: what it sends has its thread, its turn and what it is allowed on record. */
import type { Journal } from "@heddle/journal";
import type { Author } from "@heddle/protocol";
import type { AgentMessage, MessagePort, MessageToolEntry } from "@heddle/tools";
import { messageToolset } from "@heddle/tools/message-tools";
import { readAgents } from "../agents/registry.ts";
import type { TurnIo, TurnRequest } from "../runners/runner.ts";
import { eventAt } from "../threads/history.ts";
import { admissionOf } from "../turns/outcome.ts";
import type { MessageActs } from "./acts.ts";
import type { MessageRules } from "./rules.ts";
import type { SenderTurn, Sending } from "./send.ts";

export interface MessagesEngine {
  readonly journal: Journal;
  readonly rules: MessageRules;
  readonly acts: (by: Author) => Promise<MessageActs>;
}

export interface AllMessages {
  /** For the tools of a turn. */
  of(turn: TurnRequest, io: TurnIo): readonly MessageToolEntry[];
}

/** As many as an agent can choose from. */
const MAX_LISTED = 50;
const AGENT = "agent:embedded" satisfies Author;

export function createMessages(engine: MessagesEngine): AllMessages {
  return { of: (turn, io) => messageToolset(portOf(engine, turn, io)) };
}

function portOf({ journal, rules, acts }: MessagesEngine, turn: TurnRequest, io: TurnIo): MessagePort {
  const { threadId, turnId } = turn;

  async function sending({ to, text, role, inputs }: AgentMessage, callId: string): Promise<Sending> {
    const hops = await hopsOf(journal, turn);
    const from: SenderTurn = { threadId, turnId, hops, envelope: io.policy.hops.current.envelope };
    // The same call after a crash is the same message.
    const messageId = `msg_${turnId}_${callId}`.replaceAll(/[^A-Za-z0-9._:-]/g, "-").slice(0, 128);
    return { messageId, to, text, inputs: [...inputs], from, ...(role === undefined ? {} : { role }) };
  }

  return {
    async agents() {
      const agents = await readAgents(journal, { limit: MAX_LISTED }, rules);
      return agents.filter((agent) => agent.threadId !== threadId);
    },
    async tell(message, { callId }) {
      return (await acts(AGENT)).send(await sending(message, callId));
    },
    async ask(message, { callId }, { timeoutMs, signal }) {
      const asking = { ...(await sending(message, callId)), timeoutMs };
      const { outcome, text = "", failure } = await (await acts(AGENT)).ask(asking, signal);
      if (outcome === "answered") return { outcome, text };
      return { outcome, reason: failure?.message ?? "no reason was given" };
    },
    async answer(messageId, text) {
      await (await acts(AGENT)).answer({ messageId, text, threadId, duringTurn: turnId });
    },
  };
}

/** Of the messages that started the turn; undefined: none did. */
async function hopsOf(journal: Journal, turn: TurnRequest): Promise<number | undefined> {
  let most: number | undefined;
  for (const id of admissionOf(turn).messages ?? []) {
    const row = await journal.messages.get(id);
    const event = row?.receivedVersion === undefined ? undefined : await eventAt(journal, row.to, row.receivedVersion);
    if (event?.body.type === "message.received") most = Math.max(most ?? 0, event.body.hops);
  }
  return most;
}
