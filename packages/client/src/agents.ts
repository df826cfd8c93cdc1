/** Agents of a server, and messages to them. */
import type { Call, Http, Query } from "./http.ts";
import type { Agent, AgentList, AskAgent, Message, MessageList, PatchAgent, SentMessage, TellAgent } from "./types.ts";

/** How often a question is looked at while its answer is waited for. */
const LOOK_MS = 500;

export class AgentClient {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Newest activity first. */
  list(query: Query & { readonly all?: boolean; readonly limit?: number } = {}, call?: Call): Promise<AgentList> {
    return this.#http.json("GET", "api/agents", { ...call, query });
  }

  /** By its name, or the id of its thread. */
  read(agent: string, call?: Call): Promise<Agent> {
    return this.#http.json("GET", at(agent), call);
  }

  /** A name by which others know it, and whether messages wake it. */
  change(agent: string, change: PatchAgent, call?: Call): Promise<Agent> {
    return this.#http.json("PATCH", at(agent), { ...call, body: change });
  }

  messages(agent: string, query: Query & { readonly limit?: number } = {}, call?: Call): Promise<MessageList> {
    return this.#http.json("GET", at(agent, "messages"), { ...call, query });
  }

  message(messageId: string, call?: Call): Promise<Message> {
    return this.#http.json("GET", `api/messages/${encodeURIComponent(messageId)}`, call);
  }

  /** Durable when it is answered. With a `messageId` it can be sent again after a broken connection. */
  tell(agent: string, message: TellAgent, call?: Call): Promise<SentMessage> {
    return this.#http.json("POST", at(agent, "messages"), { ...call, body: message });
  }

  /** Sent, and not waited for. */
  ask(agent: string, question: AskAgent, call?: Call): Promise<SentMessage> {
    return this.#http.json("POST", at(agent, "questions"), { ...call, body: question });
  }

  /** Until the question has its end, at the latest by its deadline: answered, refused, expired or withdrawn. */
  async askAndWait(agent: string, question: AskAgent, call?: Call): Promise<Message> {
    const { messageId } = await this.ask(agent, question, call);
    for (;;) {
      const message = await this.message(messageId, call);
      if (message.outcome !== null) return message;
      await pause(LOOK_MS, call?.signal);
    }
  }
}

function at(agent: string, ...parts: readonly string[]): string {
  return ["api/agents", encodeURIComponent(agent), ...parts].join("/");
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}
