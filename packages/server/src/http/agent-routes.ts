/** Agents and messages to them. Who sends is the caller; a question is answered at once with its id, and read or followed later. */
import { readAgent, readAgents, readMessage, readMessages, findAgent, type Sending } from "@heddle/agent";
import { defined } from "@heddle/protocol";
import {
  Agent,
  AgentList,
  AgentParams,
  AgentsQuery,
  AskBody,
  Message,
  MessageList,
  MessageParams,
  MessagesQuery,
  PatchAgentBody,
  SentMessage,
  TellBody,
} from "@heddle/protocol/http";
import type { z } from "zod";
import { refuseInputToFullAccess } from "../access/full-access.ts";
import { route, type HttpCall, type Route } from "./route.ts";
import { limitOf } from "./thread-routes.ts";

async function send(
  given: Pick<Sending, "to" | "timeoutMs"> & z.output<typeof TellBody>,
  { context: { heddle }, principal, by }: HttpCall,
): Promise<z.output<typeof SentMessage>> {
  const { id } = await findAgent(heddle.journal, given.to);
  // A command may do what its receiver may; anything else only talks.
  if ((given.role ?? "command") === "command") await refuseInputToFullAccess(heddle, principal, id);
  const sent = await (await heddle.as(by).messages()).send({ ...given, to: id });
  return defined(sent);
}

export const AGENT_ROUTES: readonly Route[] = [
  route({
    name: "listAgents",
    on: "GET /api/agents",
    summary: "Agents: threads with their name, envelope, readiness and process, newest activity first",
    scope: "read",
    query: AgentsQuery,
    answer: AgentList,
    async handle({ query: { all, limit } }, { context: { heddle } }) {
      return { data: [...(await readAgents(heddle.journal, { all, limit: limitOf(limit) }, heddle.messageRules))] };
    },
  }),
  route({
    name: "readAgent",
    on: "GET /api/agents/{agent}",
    summary: "One agent, by its name or the id of its thread",
    scope: "read",
    params: AgentParams,
    answer: Agent,
    async handle({ params: { agent } }, { context: { heddle } }) {
      return readAgent(heddle.journal, await findAgent(heddle.journal, agent), heddle.messageRules);
    },
  }),
  route({
    name: "patchAgent",
    on: "PATCH /api/agents/{agent}",
    summary: "Gives an agent a name, or says whether messages wake it",
    scope: "write",
    params: AgentParams,
    body: PatchAgentBody,
    answer: Agent,
    async handle({ params: { agent }, body: { name, wakes } }, { context: { heddle }, by }) {
      const { id: threadId } = await findAgent(heddle.journal, agent);
      const acts = await heddle.as(by).messages();
      if (name !== undefined) await acts.name({ threadId, name });
      if (wakes !== undefined) await acts.wake({ threadId, wakes });
      return readAgent(heddle.journal, await findAgent(heddle.journal, threadId), heddle.messageRules);
    },
  }),
  route({
    name: "listMessages",
    on: "GET /api/agents/{agent}/messages",
    summary: "Messages to an agent and from it, newest first",
    scope: "read",
    params: AgentParams,
    query: MessagesQuery,
    answer: MessageList,
    async handle({ params: { agent }, query: { limit } }, { context: { heddle } }) {
      const { id } = await findAgent(heddle.journal, agent);
      return { data: [...(await readMessages(heddle.journal, id, limitOf(limit)))] };
    },
  }),
  route({
    name: "tellAgent",
    on: "POST /api/agents/{agent}/messages",
    summary: "Tells an agent something; durable when it is answered, and the same messageId again is the same message",
    scope: "write",
    params: AgentParams,
    body: TellBody,
    answer: SentMessage,
    status: 201,
    handle: ({ params: { agent }, body }, call) => send({ ...body, to: agent }, call),
  }),
  route({
    name: "askAgent",
    on: "POST /api/agents/{agent}/questions",
    summary: "Asks an agent, with a time limit; the answer is read under the id of the question",
    scope: "write",
    params: AgentParams,
    body: AskBody,
    answer: SentMessage,
    status: 202,
    handle: ({ params: { agent }, body }, call) => send({ ...body, to: agent }, call),
  }),
  route({
    name: "readMessage",
    on: "GET /api/messages/{messageId}",
    summary: "One message: whether its receiver got it, and how it ended",
    scope: "read",
    params: MessageParams,
    answer: Message,
    handle: ({ params: { messageId } }, { context: { heddle } }) => readMessage(heddle.journal, messageId),
  }),
];
