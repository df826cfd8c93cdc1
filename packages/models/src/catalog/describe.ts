/** The models of a provider with all that is known of each, and its source: what `heddle models` shows. */
import { defined } from "@heddle/protocol";
import { modelInfo, type ModelInfo } from "./catalog.ts";
import type { ProviderConfig } from "../providers/providers.ts";
import type { ModelListing } from "../registry/catalogs.ts";
import { catalogsInForce, openLookup } from "./lookup.ts";
import type { CatalogModel } from "./rows.ts";

export interface DescribedModel extends Omit<ModelInfo, "model" | "family" | "origin"> {
  readonly id: string;
  readonly name?: string;
  readonly hasTools?: boolean;
  readonly isDeprecated?: boolean;
  /** `provider`: only the provider itself lists the model. */
  readonly origin: { readonly kind: "built-in" | "snapshot" | "refreshed" | "provider"; readonly date: string };
}

/** What has no date yet came after the catalog was made. */
const UNDATED = "9999";

/** Newest first. Only what the provider lists, or all that is known where it has no list. */
export function describeModels(config: ProviderConfig, listing: ModelListing, home: string): readonly DescribedModel[] {
  const { id, wire = "openai-chat", vendor, family, prices, baseUrl = "", account } = config;
  const catalog = openLookup({ home, id, baseUrl, account });
  const rows = catalogRows(home, config);
  const listed = new Map(listing.models.map((model) => [model.id, model]));
  const ids = listing.source === "static" ? new Set([...listed.keys(), ...rows.keys()]) : listed.keys();
  return [...ids]
    .map((model): DescribedModel => {
      const source = { wire, vendor, family, prices, catalog };
      const { model: _model, family: _family, origin, ...info } = modelInfo(source, model);
      const row = rows.get(model);
      const own = listed.get(model);
      // The rows that are built in leave these to the catalog.
      const released = info.released ?? row?.released;
      const efforts = info.efforts ?? row?.efforts;
      const readsImages = info.readsImages ?? own?.readsImages ?? row?.input.includes("image");
      const contextTokens = info.contextTokens ?? own?.contextTokens;
      return {
        id: model,
        ...info,
        ...defined({ name: own?.name, contextTokens, windowTokens: info.windowTokens ?? contextTokens }),
        ...defined({ released, efforts, readsImages, hasTools: row?.hasTools, isDeprecated: row?.isDeprecated }),
        origin: origin ?? { kind: "provider", date: listing.listedAt ?? "" },
      };
    })
    .toSorted((a, b) => (b.released ?? UNDATED).localeCompare(a.released ?? UNDATED));
}

function catalogRows(home: string, { id, baseUrl }: ProviderConfig): ReadonlyMap<string, CatalogModel> {
  for (const [, catalog] of catalogsInForce(home)) {
    const isIts = catalog.providers.some((provider) => provider.id === id && provider.baseUrl === baseUrl);
    if (isIts) return new Map(catalog.modelsOf(id).map((model) => [model.id, model]));
  }
  return new Map();
}
