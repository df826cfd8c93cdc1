/** What becomes of a thread as a whole: its name, its place in lists, its end. */
import { HeddleError } from "@heddle/protocol";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { describeThread, NO_METADATA, NO_ROLLOUT, refuse, requireKept, requireRow } from "../thread-facts.ts";

export const nameThread: Handler<"thread/name/set"> = async ({ threadId, name }, { server, connection }) => {
  const { id } = await requireKept(server, threadId, { unkept: NO_METADATA });
  if (name.trim() === "") throw refuse("thread name must not be empty");
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).nameThread({ threadId: id, name });
    return {};
  });
};

export const archiveThread: Handler<"thread/archive"> = async ({ threadId }, { server, connection }) => {
  const { id, lastTurnStatus } = await requireKept(server, threadId);
  if (lastTurnStatus === "open") throw new HeddleError("turn.active", `thread ${id} is busy; interrupt it first`);
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived: true });
    await caughtUp(server);
    return {};
  });
};

export const unarchiveThread: Handler<"thread/unarchive"> = async ({ threadId }, { server, connection }) => {
  const { id } = await requireKept(server, threadId, { missing: "no archived rollout found for thread id " });
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived: false });
    return { thread: await describeThread(server, await requireRow(server, id, NO_ROLLOUT)) };
  });
};

export const deleteThread: Handler<"thread/delete"> = async ({ threadId }, { server, connection }) => {
  const { id } = await requireKept(server, threadId, { unkept: "thread is not persisted and cannot be deleted: " });
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
