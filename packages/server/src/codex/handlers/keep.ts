/** What becomes of a thread as a whole: its name, its place in lists, its end. */
import { HeddleError } from "@heddle/protocol";
import type { z } from "zod";
import type { ThreadNameParams, ThreadParams } from "@heddle/dialects/codex-app-server";
import type { Call } from "../../rpc/call.ts";
import type { Reply } from "../../rpc/peer.ts";
import { describeThread, NO_ROLLOUT, refuse, requireRow } from "../thread-facts.ts";

type Thread = z.infer<typeof ThreadParams>;

export async function nameThread(
  { threadId, name }: z.infer<typeof ThreadNameParams>,
  { server, connection: { by } }: Call,
): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  if (name.trim() === "") throw refuse("thread name must not be empty");
  await server.heddle.as(by).nameThread({ threadId: id, name });
  const params = { threadId: id, threadName: name.trim() };
  return { result: {}, after: () => server.announce({ method: "thread/name/updated", params }) };
}

export async function archiveThread({ threadId }: Thread, { server, connection: { by } }: Call): Promise<Reply> {
  const { id, lastTurnStatus } = await requireRow(server, threadId, NO_ROLLOUT);
  if (lastTurnStatus === "open") throw new HeddleError("turn.active", `thread ${id} is at work; interrupt it first`);
  await server.heddle.as(by).archiveThread({ threadId: id, isArchived: true });
  await server.threads.unload(id);
  return {
    result: {},
    after() {
      server.announce({ method: "thread/status/changed", params: { threadId: id, status: { type: "notLoaded" } } });
      server.announce({ method: "thread/archived", params: { threadId: id } });
    },
  };
}

export async function unarchiveThread({ threadId }: Thread, { server, connection: { by } }: Call): Promise<Reply> {
  const { id } = await requireRow(server, threadId, "no archived rollout found for thread id ");
  await server.heddle.as(by).archiveThread({ threadId: id, isArchived: false });
  const row = await requireRow(server, id, NO_ROLLOUT);
  return {
    result: { thread: await describeThread(server, row) },
    after: () => server.announce({ method: "thread/unarchived", params: { threadId: id } }),
  };
}

export async function deleteThread({ threadId }: Thread, { server, connection: { by } }: Call): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  await server.heddle.as(by).deleteThread({ threadId: id });
  await server.threads.unload(id);
  return { result: {}, after: () => server.announce({ method: "thread/deleted", params: { threadId: id } }) };
}
