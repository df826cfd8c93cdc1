/** Input that waits for its turn: the one queue of the thread, whichever door filled it. */
import { queuedInputs, type QueuedInput } from "@heddle/agent";
import { shownInput } from "@heddle/dialects/codex-app-server";
import type { Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { readInput } from "../input.ts";
import { nextSettings } from "../settings.ts";
import { pageOf } from "../../rpc/paging.ts";
import { requireLoaded } from "../thread-facts.ts";

export const addQueued: Handler<"thread/queue/add"> = async (params, { server, connection }) => {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId, workspace } = loaded;
  const input = await readInput(params.input, workspace);
  const settings = await nextSettings(server, loaded);
  return heldBack(connection, threadId, async () => {
    const clientId = params.clientUserMessageId;
    const turnId = await server.queue.add({ threadId, input, settings, clientId, by: connection.by });
    return { queuedSubmission: shown({ turnId, input, clientId }) };
  });
};

export const listQueued: Handler<"thread/queue/list"> = async (params, { server }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  const waiting = await queuedInputs(server.heddle.journal, threadId);
  const { data, nextCursor } = pageOf(waiting, params, ({ turnId }) => turnId);
  return { result: { data: data.map(shown), nextCursor } };
};

export const deleteQueued: Handler<"thread/queue/delete"> = async (params, { server, connection }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  return heldBack(connection, threadId, async () => {
    const failure = { code: "turn.interrupted", message: "taken out of the queue by its client" };
    return {
      deleted: await server.queue.remove({ threadId, turnId: params.queuedSubmissionId, failure, by: connection.by }),
    };
  });
};

function shown({ turnId, input, clientId }: Pick<QueuedInput, "turnId" | "input" | "clientId">): object {
  return { id: turnId, input: input.map(shownInput), clientUserMessageId: clientId ?? turnId };
}
