/**
 * `provider:model`, or a bare model. What stands before the first colon is a provider only when there is one of that name:
 * names of models have colons too. A bare model that several providers offer is an error that lists them; none is chosen.
 */
import { HeddleError } from "@heddle/protocol";
import type { Registry } from "./registry.ts";

export interface Selection {
  readonly provider: string | undefined;
  readonly model: string;
}

export function parseSelector(registry: Pick<Registry, "find">, text: string): Selection {
  const colon = text.indexOf(":");
  if (colon <= 0 || colon === text.length - 1) return { provider: undefined, model: text };
  try {
    const { id, kind } = registry.find(text.slice(0, colon));
    if (kind === "model") return { provider: id, model: text.slice(colon + 1) };
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
  }
  return { provider: undefined, model: text };
}

/** What a provider is known to offer; `isAuthoritative` when it said so itself and lately. */
export interface Offer {
  readonly provider: string;
  readonly isAuthoritative: boolean;
  readonly models: readonly string[];
}

export function selectModel(
  registry: Registry,
  text: string,
  { offers, defaultProvider }: { readonly offers: readonly Offer[]; readonly defaultProvider?: string | undefined },
): { readonly provider: string; readonly model: string } {
  const { provider, model } = parseSelector(registry, text);
  const named = provider ?? defaultProvider;
  if (named !== undefined) {
    const { id } = registry.model(named);
    requireOffered(
      offers.find((offer) => offer.provider === id),
      { provider: id, model },
    );
    return { provider: id, model };
  }
  const offering = offers.filter(({ models }) => models.includes(model)).map((offer) => offer.provider);
  const [only, second] = offering;
  if (only !== undefined && second === undefined) return { provider: registry.model(only).id, model };
  if (only === undefined) {
    throw new HeddleError("model.unknown", `no provider offers "${model}"; name one: PROVIDER:${model}`);
  }
  const choices = offering.map((id) => `${id}:${model}`).join(", ");
  throw new HeddleError("model.ambiguous", `several providers offer "${model}"; write one of ${choices}`);
}

/** A model the provider itself does not list is refused, and never exchanged for one that it does. */
function requireOffered(offer: Offer | undefined, { provider, model }: { provider: string; model: string }): void {
  if (offer === undefined || !offer.isAuthoritative || offer.models.includes(model)) return;
  const some = offer.models.slice(0, 10).join(", ");
  throw new HeddleError("model.unknown", `${provider} does not offer "${model}" to this account; it offers ${some}`, {
    details: { provider, model },
  });
}
