/** What becomes of a thread as a whole: its name, its place in lists, its end. */
import { HeddleError } from "@heddle/protocol";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { describeThread, NO_ROLLOUT, refuse, requireRow } from "../thread-facts.ts";

export const nameThread: Handler<"thread/name/set"> = async ({ threadId, name }, { server, connection }) => {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  if (name.trim() === "") throw refuse("thread name must not be empty");
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).nameThread({ threadId: id, name });
    return {};
  });
};

export const archiveThread: Handler<"thread/archive"> = async ({ threadId }, { server, connection }) => {
  const { id, lastTurnStatus } = await requireRow(server, threadId, NO_ROLLOUT);
  if (lastTurnStatus === "open") throw new HeddleError("turn.active", `thread ${id} is busy; interrupt it first`);
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived: true });
    await caughtUp(server);
    return {};
  });
};

export const unarchiveThread: Handler<"thread/unarchive"> = async ({ threadId }, { server, connection }) => {
  const { id } = await requireRow(server, threadId, "no archived rollout found for thread id ");
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived: false });
    return { thread: await describeThread(server, await requireRow(server, id, NO_ROLLOUT)) };
  });
};

export const deleteThread: Handler<"thread/delete"> = async ({ threadId }, { server, connection }) => {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).deleteThread({ threadId: id });
    await caughtUp(server);
    return {};
  });
};

/** The server has processed what was stored before its client is answered. */
export async function caughtUp({ fanOut }: ServerContext): Promise<void> {
  await (await fanOut()).caughtUp();
}
