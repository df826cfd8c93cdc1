/** What becomes of a thread as a whole: its name, its place in lists, its end. */
import type { z } from "zod";
import type { ThreadNameParams, ThreadParams } from "@heddle/protocol/codex-app-server";
import type { Call } from "../call.ts";
import type { Reply } from "../peer.ts";
import { NO_ROLLOUT, requireRow } from "../thread-facts.ts";

type Thread = z.infer<typeof ThreadParams>;

export async function nameThread(
  { threadId, name }: z.infer<typeof ThreadNameParams>,
  { server }: Call,
): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  await server.heddle.nameThread({ threadId: id, name });
  const params = { threadId: id, threadName: name.trim() };
  return { result: {}, after: () => server.announce({ method: "thread/name/updated", params }) };
}

export async function deleteThread({ threadId }: Thread, { server }: Call): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NO_ROLLOUT);
  await server.heddle.deleteThread({ threadId: id });
  await server.threads.unload(id);
  return { result: {}, after: () => server.announce({ method: "thread/deleted", params: { threadId: id } }) };
}
