/** Commands of the agent that outlived their calls, for people who look after them. */
import type { Handler } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import { requireLoaded } from "../thread-facts.ts";

export const listTerminals: Handler<"thread/backgroundTerminals/list"> = async (params, { server }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  const { data, nextCursor } = pageOf(await server.heddle.terminals(threadId), params, ({ processId }) => processId);
  const shown = data.map(({ itemId, processId, command, cwd }) => ({
    itemId: itemId ?? "",
    processId,
    command,
    cwd,
    osPid: null,
    cpuPercent: null,
    rssKb: null,
  }));
  return { result: { data: shown, nextCursor } };
};

export const terminateTerminal: Handler<"thread/backgroundTerminals/terminate"> = async (params, { server }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  const ended = await server.heddle.endTerminals(threadId, params.processId);
  return { result: { terminated: ended > 0 } };
};

export const cleanTerminals: Handler<"thread/backgroundTerminals/clean"> = async (params, { server }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  await server.heddle.endTerminals(threadId);
  return { result: {} };
};
