/** How much a model thinks, in the words of all providers, fitted to what one model takes. */
import type { ModelInfo } from "./catalog.ts";
import type { ModelRequest } from "./stream.ts";

const ORDER = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

export interface FittedEffort {
  /** Absent: none is sent. */
  readonly effort?: string;
  /** What was changed and why, for the user; absent: nothing was. */
  readonly note?: string;
}

/** The nearest effort below the wish that the model has, or its lowest. A word that nobody knows goes out as it is. */
export function fitEffort(
  info: Pick<ModelInfo, "model" | "isReasoning" | "efforts">,
  effort: string | undefined,
): FittedEffort {
  if (effort === undefined) return {};
  if (info.isReasoning === false) return { note: `${info.model} has no reasoning; the effort ${effort} is left out` };
  const { efforts = [] } = info;
  const wish = ORDER.indexOf(effort);
  if (efforts.length === 0 || efforts.includes(effort) || wish === -1) return { effort };
  const known = ORDER.filter((word) => efforts.includes(word));
  const fitted = known.findLast((word) => ORDER.indexOf(word) < wish) ?? known[0];
  if (fitted === undefined) return { effort };
  const has = `it takes ${efforts.join(", ")}`;
  return { effort: fitted, note: `${info.model} has no effort ${effort}: ${has}; ${fitted} is used` };
}

export function withFittingEffort(request: ModelRequest, info: ModelInfo): ModelRequest {
  const { effort: wish, ...rest } = request;
  const { effort } = fitEffort(info, wish);
  return effort === undefined ? rest : { ...rest, effort };
}
