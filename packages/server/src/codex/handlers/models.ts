/** Models that are known; any other name that the provider knows works as well. */
import { knownModels, modelInfo } from "@heddle/models";
import type { Handler } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import { defaultSettings } from "../settings.ts";

const EFFORTS = [
  { reasoningEffort: "low", description: "Answers fast" },
  { reasoningEffort: "medium", description: "Reasons as much as most work needs" },
  { reasoningEffort: "high", description: "Reasons for a long time" },
] as const;

export const listModels: Handler<"model/list"> = async (params, { server }) => {
  const chosen = (await defaultSettings(server.settings))?.model;
  const { data, nextCursor } = pageOf(modelsLike(chosen), params, (model) => model);
  return { result: { data: data.map((model) => describe(model, model === chosen)), nextCursor } };
};

/** The one that is chosen, and those that the same provider is likely to have. */
export function modelsLike(chosen: string | undefined): readonly string[] {
  const known = knownModels();
  return chosen === undefined ? known : [chosen, ...known.filter((model) => isSibling(model, chosen))];
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
