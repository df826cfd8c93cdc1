/** Commands of the user in the thread's sandbox, during a turn or as a turn of their own; and commands that outlived their call. */
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { pageOf } from "../../rpc/paging.ts";
import { nextSettings } from "../settings.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";

export const shellCommand: Handler<"thread/shellCommand"> = async (params, { server, connection }) => {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId } = loaded;
  const command = params.command.trim();
  if (command === "") throw refuse("command must not be empty");
  const { timeoutMs } = params;
  const settings = await nextSettings(server, loaded);
  return heldBack(connection, threadId, async () => {
    try {
      const time = typeof timeoutMs === "number" ? { timeoutMs: Math.max(1, timeoutMs) } : {};
      const acts = server.heddle.as(connection.by);
      await server.turns.begin(() => acts.runShell({ threadId, command, settings, ...time }));
      return {};
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "turn.active") throw error;
      const message =
        "the turn that runs belongs to another process: end or interrupt it there, then send the command again";
      throw new HeddleError("turn.active", message, { cause: error });
    }
  });
};

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
