/** What the tools for messages between agents need of the engine, which delivers them. */
import type { Agent, InputRole, NamedInput } from "@heddle/protocol";
import type { Offer } from "./registry.ts";
import type { CallContext, Tool } from "./tool.ts";

export interface AgentMessage {
  /** The name of an agent, or the id of its thread. */
  readonly to: string;
  readonly text: string;
  /** Absent: a quote. */
  readonly role?: InputRole | undefined;
  readonly inputs: readonly NamedInput[];
}

/** `waits`: it is kept, and shown with the next turn of the receiver. */
export type Delivered = "wakes" | "waits";

export type AgentAnswer =
  | { readonly outcome: "answered"; readonly text: string }
  | { readonly outcome: "refused" | "expired" | "withdrawn"; readonly reason: string };

/** The other agents, as the agent of one turn knows them. Every refusal is typed. */
export interface MessagePort {
  agents(): Promise<readonly Agent[]>;
  /** Durable when it resolves. The same call tells once. */
  tell(message: AgentMessage, call: CallContext): Promise<{ readonly messageId: string; readonly how: Delivered }>;
  /** Until there is an answer, a refusal, or the time is over. */
  ask(message: AgentMessage, call: CallContext, limit: AskLimit): Promise<AgentAnswer>;
  /** Answers a question that this agent was asked. */
  answer(messageId: string, text: string): Promise<void>;
}

export interface AskLimit {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export const MESSAGE_TOOLS = ["list_agents", "tell_agent", "ask_agent", "answer_agent"] as const;
export type MessageTool = (typeof MESSAGE_TOOLS)[number];

export interface MessageToolEntry {
  readonly name: MessageTool;
  readonly offeredAs: string;
  readonly offer: Offer;
  load(): Promise<Tool>;
}
