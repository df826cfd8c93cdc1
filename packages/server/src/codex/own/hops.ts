/** Another envelope for a thread, by its user. What happened is told from the journal, after the answer. */
import { z } from "zod";
import type { Call } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import type { Reply } from "../../rpc/peer.ts";
import { requireKept } from "../thread-facts.ts";
import { ownMethod } from "./own-method.ts";

const MAX_NAME_CHARS = 200;
const MAX_REASON_CHARS = 2000;

const Back = z.strictObject({
  threadId: z.string(),
  reason: z.string().min(1).max(MAX_REASON_CHARS),
  outcome: z.unknown().optional(),
});

const Hop = z.strictObject({
  ...Back.shape,
  to: z.string().min(1).max(MAX_NAME_CHARS),
  carry: z.record(z.string(), z.unknown()).optional(),
});

export const hopThread = ownMethod(Hop, hopTo);
export const hopBack = ownMethod(Back, (hop, call) => hopTo({ ...hop, to: "back" }, call));

async function hopTo({ threadId, ...hop }: z.infer<typeof Hop>, { server, connection }: Call): Promise<Reply> {
  const { id } = await requireKept(server, threadId);
  return heldBack(connection, id, async () => ({
    ...(await server.heddle.as(connection.by).hopThread({ ...hop, threadId: id })),
  }));
}
