/** Lists of what clients may switch on or choose; where Heddle has nothing to switch, the list says so by being short. */
import type { Handler } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";

/** What is unfinished is not in the product, so that there is nothing to switch. */
export const listFeatures: Handler<"experimentalFeature/list"> = async (params) => {
  const { data, nextCursor } = pageOf<string>([], params, (name) => name);
  return { result: { data, nextCursor } };
};

export const listCollaborationModes: Handler<"collaborationMode/list"> = async () => {
  const mode = (name: string) => ({ name, mode: name.toLowerCase(), model: null, reasoning_effort: null });
  return { result: { data: [mode("Plan"), mode("Default")] } };
};

/** Of the provider's own tools none is used: Heddle's tools run behind Heddle's wall. */
export const readProviderCapabilities: Handler<"modelProvider/capabilities/read"> = async () => {
  return { result: { imageGeneration: false, webSearch: false } };
};
