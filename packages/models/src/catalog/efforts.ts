/** Reasoning efforts of all providers, mapped to those of one model. */
import { defined } from "@heddle/protocol";
import type { ModelInfo } from "./catalog.ts";
import type { ModelRequest } from "../requests/stream.ts";

const ORDER = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

export interface FittedEffort {
  /** Absent: none is sent. */
  readonly effort?: string;
  /** What was changed and why, for the user; absent: nothing was. */
  readonly note?: string;
}

/** The nearest lower effort that the model has, or its lowest. An unknown effort is sent as it is. */
export function fitEffort(
  info: Pick<ModelInfo, "model" | "isReasoning" | "efforts">,
  effort: string | undefined,
): FittedEffort {
  if (effort === undefined) return {};
  if (info.isReasoning === false) return { note: `${info.model} has no reasoning; the effort ${effort} is left out` };
  const { efforts = [] } = info;
  const rank = ORDER.indexOf(effort);
  if (efforts.length === 0 || efforts.includes(effort) || rank === -1) return { effort };
  const known = ORDER.filter((word) => efforts.includes(word));
  const fitted = known.findLast((word) => ORDER.indexOf(word) < rank) ?? known[0];
  if (fitted === undefined) return { effort };
  const has = `it takes ${efforts.join(", ")}`;
  return { effort: fitted, note: `${info.model} has no effort ${effort}: ${has}; ${fitted} is used` };
}

export function withFittingEffort(request: ModelRequest, info: ModelInfo): ModelRequest {
  const { effort, ...rest } = request;
  return { ...rest, ...defined({ effort: fitEffort(info, effort).effort }) };
}
