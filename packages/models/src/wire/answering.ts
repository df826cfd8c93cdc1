/**
 * How a model is to answer (verbosity, summaries of its reasoning, service tier) in the form of each wire. What a wire
 * has no form for is said as text, or left out with a note for the user.
 */
import type { ReasoningSummary, Verbosity } from "@heddle/protocol";
import type { ModelInfo } from "../catalog/catalog.ts";
import type { Provider } from "../providers/providers.ts";

export interface Answering {
  readonly verbosity?: Verbosity | undefined;
  readonly summary?: ReasoningSummary | undefined;
  readonly serviceTier?: string | undefined;
}

type Service = Pick<Provider, "wire" | "name">;

/** As the field of OpenAI's wires; undefined: it is said as text. */
export function verbosityField({ verbosity }: Answering, info: ModelInfo): Verbosity | undefined {
  return info.hasVerbosity === true ? verbosity : undefined;
}

const VERBOSITY_TEXTS: Readonly<Record<Verbosity, string>> = {
  low: "Keep your answers short.",
  medium: "",
  high: "Answer at length, with the details.",
};

/** For models without the field. */
export function verbosityText({ verbosity }: Answering, info: ModelInfo): string {
  return verbosity === undefined || info.hasVerbosity === true ? "" : VERBOSITY_TEXTS[verbosity];
}

/** The names that OpenAI has. */
const TIERS: ReadonlySet<string> = new Set(["auto", "flex", "priority", "scale"]);
const NO_TIER = "default";

/** undefined: none is sent. */
export function tierOf(asked: Answering, { wire }: Service, info: ModelInfo): string | undefined {
  const { serviceTier: tier = NO_TIER } = asked;
  if (!TIERS.has(tier)) return undefined;
  if (wire === "anthropic") return tier === "priority" ? "auto" : undefined;
  return wire === "openai-responses" || (wire === "openai-chat" && info.family === "openai") ? tier : undefined;
}

/** What of it has no effect, for the user. */
export function answeringNotes(asked: Answering, service: Service, info: ModelInfo): readonly string[] {
  const { serviceTier = NO_TIER, summary = "auto" } = asked;
  const isTierLost = serviceTier !== NO_TIER && tierOf(asked, service, info) === undefined;
  const isSummaryLost = service.wire === "openai-chat" && summary !== "auto";
  return [
    ...(isTierLost ? [`${service.name} has no service tier ${serviceTier} for ${info.model}; none is asked for`] : []),
    ...(isSummaryLost ? [`${service.name} cannot be asked for ${summary} summaries of reasoning over this wire`] : []),
  ];
}
