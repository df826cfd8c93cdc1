/** Commands of the agent that outlived their calls, for people who look after them. */
import type { TerminalTerminateParams, ThreadPageParams, ThreadParams } from "@heddle/dialects/codex-app-server";
import type { z } from "zod";
import type { Call } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import type { Reply } from "../../rpc/peer.ts";
import { requireLoaded } from "../thread-facts.ts";

export async function listTerminals(params: z.infer<typeof ThreadPageParams>, { server }: Call): Promise<Reply> {
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
}

export async function terminateTerminal(
  params: z.infer<typeof TerminalTerminateParams>,
  { server }: Call,
): Promise<Reply> {
  const { threadId } = requireLoaded(server, params.threadId);
  const ended = await server.heddle.endTerminals(threadId, params.processId);
  return { result: { terminated: ended > 0 } };
}

export async function cleanTerminals(params: z.infer<typeof ThreadParams>, { server }: Call): Promise<Reply> {
  const { threadId } = requireLoaded(server, params.threadId);
  await server.heddle.endTerminals(threadId);
  return { result: {} };
}
