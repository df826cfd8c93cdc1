/** Input that waits for its turn: the one queue of the thread, whichever door filled it. */
import { queuedInputs, type QueuedInput } from "@heddle/agent";
import { newTurn, shownInput, type CodexParams } from "@heddle/dialects/codex-app-server";
import { isHeddleError, type InputPart } from "@heddle/protocol";
import type { Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { readInput } from "../input.ts";
import { nextSettings } from "../settings.ts";
import { pageOf } from "../../rpc/paging.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";

export const addQueued: Handler<"thread/queue/add"> = async (params, { server, connection }) => {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId, workspace } = loaded;
  const input = await queueable(params.input, workspace);
  const settings = await nextSettings(server, loaded);
  return heldBack(connection, threadId, async () => {
    const clientId = params.clientUserMessageId;
    const asked = { threadId, input, settings, clientId, isHeldByInterrupt: true, by: connection.by };
    const turnId = await server.queue.add(asked);
    return { queuedSubmission: shown({ turnId, input, clientId }) };
  });
};

async function queueable(
  input: CodexParams<"thread/queue/add">["input"],
  workspace: string,
): Promise<readonly InputPart[]> {
  if (input.length === 0) throw refuse("only user input can be added to the user-message queue");
  return readInput(input, workspace);
}

export const updateQueued: Handler<"thread/queue/update"> = async (params, { server, connection }) => {
  const { threadId, workspace } = requireLoaded(server, params.threadId);
  const { queuedSubmissionId: turnId } = params;
  const input = await queueable(params.input, workspace);
  return heldBack(connection, threadId, async () => {
    const after = await server.queue.change({ threadId, by: connection.by }, (waiting) =>
      waiting.map((queued) => (queued.turnId === turnId ? { ...queued, input } : queued)),
    );
    const changed = after.find((queued) => queued.turnId === turnId);
    if (changed === undefined) throw refuse(`queued submission not found: ${turnId}`);
    return { queuedSubmission: shown(changed) };
  });
};

export const reorderQueued: Handler<"thread/queue/reorder"> = async (params, { server, connection }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  const { queuedSubmissionIds: wanted } = params;
  return heldBack(connection, threadId, async () => {
    await server.queue.change({ threadId, by: connection.by }, (waiting) => {
      const sorted = wanted.flatMap((id) => waiting.find(({ turnId }) => turnId === id) ?? []);
      if (wanted.length === waiting.length && new Set(sorted).size === waiting.length) return sorted;
      throw refuse("queue reorder must include every queued submission exactly once");
    });
    return {};
  });
};

/** Begins what waits behind an interrupted turn. */
export const startQueued: Handler<"thread/queue/start"> = async (params, { server, connection }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  const turnId = params.queuedSubmissionId ?? undefined;
  return heldBack(connection, threadId, async () => {
    try {
      return { turn: newTurn(await server.queue.start({ threadId, ...(turnId === undefined ? {} : { turnId }) })) };
    } catch (error) {
      if (!isHeddleError(error)) throw error;
      if (error.code === "turn.active") throw refuse("thread already has an active or pending turn");
      if (error.code !== "turn.not-found") throw error;
      throw refuse(turnId === undefined ? "queue is empty" : `queued submission not found: ${turnId}`);
    }
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
