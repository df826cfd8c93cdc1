/** What becomes of a thread as a whole: its name, its place in lists, its end. */
import { HeddleError } from "@heddle/protocol";
import type { z } from "zod";
import type { ThreadNameParams, ThreadParams } from "@heddle/dialects/codex-app-server";
import type { Call, ServerContext } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import type { Reply } from "../../rpc/peer.ts";
import { describeThread, NO_ROLLOUT, refuse, requireRow } from "../thread-facts.ts";

type Thread = z.infer<typeof ThreadParams>;

export async function nameThread(
  { threadId, name }: z.infer<typeof ThreadNameParams>,
  { server, connection }: Call,
): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  if (name.trim() === "") throw refuse("thread name must not be empty");
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).nameThread({ threadId: id, name });
    return {};
  });
}

export async function archiveThread({ threadId }: Thread, { server, connection }: Call): Promise<Reply> {
  const { id, lastTurnStatus } = await requireRow(server, threadId, NO_ROLLOUT);
  if (lastTurnStatus === "open") throw new HeddleError("turn.active", `thread ${id} is busy; interrupt it first`);
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived: true });
    await caughtUp(server);
    return {};
  });
}

export async function unarchiveThread({ threadId }: Thread, { server, connection }: Call): Promise<Reply> {
  const { id } = await requireRow(server, threadId, "no archived rollout found for thread id ");
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived: false });
    return { thread: await describeThread(server, await requireRow(server, id, NO_ROLLOUT)) };
  });
}

export async function deleteThread({ threadId }: Thread, { server, connection }: Call): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  return heldBack(connection, id, async () => {
    await server.heddle.as(connection.by).deleteThread({ threadId: id });
    await caughtUp(server);
    return {};
  });
}

/** Whoever is answered finds the server as the journal has it. */
export async function caughtUp({ fanOut }: ServerContext): Promise<void> {
  await (await fanOut()).caughtUp();
}
