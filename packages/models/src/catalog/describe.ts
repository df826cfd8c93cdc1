/** The models of a provider with all that is known of each, and from where: what `heddle models` shows. */
import { modelInfo, type ModelInfo } from "../catalog.ts";
import type { ProviderConfig } from "../providers.ts";
import type { ModelListing } from "../registry/catalogs.ts";
import { catalogsInForce, openLookup } from "./lookup.ts";
import type { CatalogModel } from "./rows.ts";

export interface DescribedModel extends Omit<ModelInfo, "model" | "family" | "origin"> {
  readonly id: string;
  readonly name?: string;
  readonly hasTools?: boolean;
  readonly isDeprecated?: boolean;
  /** `provider`: it lists the model, and nobody else knows anything of it. */
  readonly origin: { readonly kind: "built-in" | "snapshot" | "refreshed" | "provider"; readonly date: string };
}

/** What has no date yet came after the catalog was made. */
const UNDATED = "9999";

/** Newest first. What a provider says it offers is all that it offers; otherwise, all that is known. */
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
      return {
        id: model,
        ...(own?.name === undefined ? {} : { name: own.name }),
        ...info,
        ...(own?.contextTokens === undefined || info.contextTokens !== undefined ? {} : windowOf(own.contextTokens)),
        ...(released === undefined ? {} : { released }),
        ...(efforts === undefined ? {} : { efforts }),
        ...(readsImages === undefined ? {} : { readsImages }),
        ...(row === undefined ? {} : { hasTools: row.hasTools }),
        ...(row?.isDeprecated === true ? { isDeprecated: true } : {}),
        origin: origin ?? { kind: "provider", date: listing.listedAt ?? "" },
      };
    })
    .toSorted((a, b) => (b.released ?? UNDATED).localeCompare(a.released ?? UNDATED));
}

function windowOf(tokens: number): Pick<ModelInfo, "contextTokens" | "windowTokens"> {
  return { contextTokens: tokens, windowTokens: tokens };
}

function catalogRows(home: string, { id, baseUrl }: ProviderConfig): ReadonlyMap<string, CatalogModel> {
  for (const [, catalog] of catalogsInForce(home)) {
    const isIts = catalog.providers.some((provider) => provider.id === id && provider.baseUrl === baseUrl);
    if (isIts) return new Map(catalog.modelsOf(id).map((model) => [model.id, model]));
  }
  return new Map();
}
