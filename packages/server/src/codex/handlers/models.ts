/** Models that are known; any other name that the provider knows works as well. */
import { knownModels, modelInfo } from "@heddle/models";
import { isHeddleError } from "@heddle/protocol";
import type { z } from "zod";
import type { ModelListParams } from "@heddle/dialects/codex-app-server";
import type { Call, ServerContext } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import type { Reply } from "../../rpc/peer.ts";

const EFFORTS = [
  { reasoningEffort: "low", description: "Answers fast" },
  { reasoningEffort: "medium", description: "Reasons as much as most work needs" },
  { reasoningEffort: "high", description: "Reasons for a long time" },
] as const;

export async function listModels(wish: z.infer<typeof ModelListParams>, { server }: Call): Promise<Reply> {
  const chosen = await defaultModel(server);
  const known = knownModels();
  const others = chosen === undefined ? known : known.filter((model) => isSibling(model, chosen));
  const { data, nextCursor } = pageOf([chosen ?? [], others].flat(), wish, (model) => model);
  return { result: { data: data.map((model) => describe(model, model === chosen)), nextCursor } };
}

/** Without a key or a provider nothing can be asked, but the list can still be read. */
async function defaultModel({ settings }: ServerContext): Promise<string | undefined> {
  try {
    return (await settings.resolve({})).model;
  } catch (error) {
    if (isHeddleError(error)) return undefined;
    throw error;
  }
}

function isSibling(model: string, chosen: string): boolean {
  return model !== chosen && familyOf(model) === familyOf(chosen);
}

export function contextWindowOf(model: string): number | undefined {
  return modelInfo(ANY_PROVIDER, model).windowTokens;
}

const ANY_PROVIDER = { wire: "openai-chat", vendor: undefined, family: undefined } as const;

function familyOf(model: string): string {
  return modelInfo(ANY_PROVIDER, model).family;
}

function describe(model: string, isDefault: boolean): Readonly<Record<string, unknown>> {
  return {
    id: model,
    model,
    upgrade: null,
    upgradeInfo: null,
    availabilityNux: null,
    displayName: model,
    description: "",
    modelSpecialty: null,
    hidden: false,
    supportedReasoningEfforts: EFFORTS,
    defaultReasoningEffort: "medium",
    inputModalities: ["text", "image"],
    supportsPersonality: false,
    multiAgentVersion: null,
    additionalSpeedTiers: [],
    serviceTiers: [],
    defaultServiceTier: null,
    availableAccessPrograms: null,
    isDefault,
  };
}
