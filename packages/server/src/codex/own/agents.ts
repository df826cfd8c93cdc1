/** Agents and messages for clients of app-server. Who sends is the connection. */
import { findAgent, readAgent, readAgents, readMessage, readMessages } from "@heddle/agent";
import { AgentName, defined, MAX_ASK_MS, OutgoingMessage } from "@heddle/protocol";
import { z } from "zod";
import type { Call } from "../../rpc/call.ts";
import { refuseInputToFullAccess } from "../../access/full-access.ts";
import { ownMethod } from "./own-method.ts";

const MAX_LISTED = 100;
const agent = z.string().min(1).max(200);
const limit = z.int().min(1).max(MAX_LISTED).optional();

const List = z.strictObject({ all: z.boolean().optional(), limit });

export const listAgents = ownMethod(List, async ({ all, limit: count = MAX_LISTED }, { server: { heddle } }) => ({
  result: { data: await readAgents(heddle.journal, { all, limit: count }, heddle.messageRules) },
}));

export const getAgent = ownMethod(z.strictObject({ agent }), async ({ agent: wanted }, { server: { heddle } }) => {
  const row = await findAgent(heddle.journal, wanted);
  return { result: { agent: await readAgent(heddle.journal, row, heddle.messageRules) } };
});

const Name = z.strictObject({ agent, name: AgentName.nullable() });

export const nameAgent = ownMethod(Name, async ({ agent: wanted, name }, { server: { heddle }, connection }) => {
  const { id: threadId } = await findAgent(heddle.journal, wanted);
  await (await heddle.as(connection.by).messages()).name({ threadId, name });
  return { result: {} };
});

const Wake = z.strictObject({ agent, wakes: z.boolean().nullable() });

export const wakeAgent = ownMethod(Wake, async ({ agent: wanted, wakes }, { server: { heddle }, connection }) => {
  const { id: threadId } = await findAgent(heddle.journal, wanted);
  await (await heddle.as(connection.by).messages()).wake({ threadId, wakes });
  return { result: {} };
});

const Tell = z.strictObject({ agent, ...OutgoingMessage.shape });

export const tell = ownMethod(Tell, async ({ agent: wanted, ...message }, call) => {
  const { to, acts } = await receiver(wanted, message, call);
  return { result: { ...defined(await acts.send({ ...message, to })) } };
});

const Ask = z.strictObject({ ...Tell.shape, timeoutMs: z.int().min(1).max(MAX_ASK_MS) });

/** Answered when the question has its end. A client that has gone withdraws it. */
export const ask = ownMethod(Ask, async ({ agent: wanted, ...message }, call) => {
  const { to, acts } = await receiver(wanted, message, call);
  const gone = new AbortController();
  const forget = call.connection.ends.add({
    [Symbol.asyncDispose]: () => {
      gone.abort();
      return Promise.resolve();
    },
  });
  try {
    const { messageId } = await acts.ask({ ...message, to }, gone.signal);
    return { result: { message: await readMessage(call.server.heddle.journal, messageId) } };
  } finally {
    forget();
  }
});

const Messages = z.strictObject({ agent, limit });

export const listMessages = ownMethod(Messages, async ({ agent: wanted, limit: count = MAX_LISTED }, { server }) => {
  const { journal } = server.heddle;
  const { id } = await findAgent(journal, wanted);
  return { result: { data: await readMessages(journal, id, count) } };
});

const messageId = z.string().min(1).max(128);

export const getMessage = ownMethod(z.strictObject({ messageId }), async ({ messageId: id }, { server }) => ({
  result: { message: await readMessage(server.heddle.journal, id) },
}));

async function receiver(wanted: string, { role = "command" }: OutgoingMessage, { server, connection }: Call) {
  const { heddle } = server;
  const { id: to } = await findAgent(heddle.journal, wanted);
  // A command may do what its receiver may; anything else only talks.
  if (role === "command") await refuseInputToFullAccess(heddle, connection.principal, to);
  return { to, acts: await heddle.as(connection.by).messages() };
}
