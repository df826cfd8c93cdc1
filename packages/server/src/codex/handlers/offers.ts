/** Lists of what clients may switch on or choose; where Heddle has nothing to switch, the list says so by being short. */
import type { PageParams } from "@heddle/dialects/codex-app-server";
import type { z } from "zod";
import { pageOf } from "../../rpc/paging.ts";
import type { Reply } from "../../rpc/peer.ts";

/** What is unfinished is not in the product, so that there is nothing to switch. */
export async function listFeatures(wish: z.infer<typeof PageParams>): Promise<Reply> {
  const { data, nextCursor } = pageOf<string>([], wish, (name) => name);
  return { result: { data, nextCursor } };
}

export async function listCollaborationModes(): Promise<Reply> {
  const mode = (name: string) => ({ name, mode: name.toLowerCase(), model: null, reasoning_effort: null });
  return { result: { data: [mode("Plan"), mode("Default")] } };
}

/** Of the provider's own tools none is used: Heddle's tools run behind Heddle's wall. */
export async function readProviderCapabilities(): Promise<Reply> {
  return { result: { imageGeneration: false, webSearch: false } };
}
