/** What a call sets going is told after its answer. */
import type { ServerContext } from "./call.ts";
import type { Reply } from "./peer.ts";

export async function heldBack(
  server: ServerContext,
  threadId: string,
  carryOut: () => Promise<unknown>,
): Promise<Reply> {
  const feed = await server.threads.feed(threadId);
  const held = feed.hold();
  try {
    return { result: await carryOut(), after: () => held[Symbol.dispose]() };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}
