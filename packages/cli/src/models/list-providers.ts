/**
 * Which providers `heddle models` shows. Those that are built in or configured are asked for their lists where there is a key
 * or a login; one of the catalog only when it is named, because a variable that is set is not a choice.
 */
import { keyVariable, type ProviderConfig } from "@heddle/models";
import type { Accounts, ModelListing } from "@heddle/models/accounts";
import { catalogsInForce, describeModels, type DescribedModel } from "@heddle/models/catalog";

export interface ListedProvider {
  readonly listing: ModelListing;
  readonly models: readonly DescribedModel[];
}

export interface ListQuestion {
  readonly accounts: Accounts;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  /** One by name, those that could be asked now, or every one that is known. */
  readonly scope: { readonly provider: string } | "usable" | "all";
  readonly isForced: boolean;
}

export async function providersToList(question: ListQuestion): Promise<readonly ListedProvider[]> {
  const { accounts, home, scope, isForced } = question;
  const { registry } = accounts;
  const describe = (config: ProviderConfig, listing: ModelListing): ListedProvider => ({
    listing,
    models: describeModels(config, listing, home),
  });
  const named = typeof scope === "object" ? scope.provider : undefined;
  const listings = await accounts.models({ provider: named, isForced });
  const own = listings.map((listing) => describe(registry.model(listing.provider).config, listing));
  if (named !== undefined) return own;
  const known = new Set([...registry.entries.map(({ id }) => id), ...listings.map(({ provider }) => provider)]);
  const others = catalogConfigs(home).filter(({ id }) => !known.has(id));
  if (scope === "all") return [...own, ...others.map((config) => describe(config, unasked(config, question)))];
  return [
    ...own.filter(({ listing }) => isUsable(listing)),
    ...others
      .filter((config) => keyVariable(config, question.env) !== undefined)
      .map((config) => describe(config, unasked(config, question))),
  ];
}

/** A local server that is not running is not a usable provider. */
function isUsable({ isLoggedIn, source, models }: ModelListing): boolean {
  return isLoggedIn && (source !== "static" || models.length > 0);
}

function unasked(config: ProviderConfig, { env }: ListQuestion): ModelListing {
  const isLoggedIn = keyVariable(config, env) !== undefined;
  return { provider: config.id, source: "static", isStale: true, isLoggedIn, models: [] };
}

/** Each once, as the newest catalog has it. */
function catalogConfigs(home: string): readonly ProviderConfig[] {
  const configs = new Map<string, ProviderConfig>();
  for (const [, { providers }] of catalogsInForce(home)) {
    for (const { id, name, wire, baseUrl, keys } of providers) {
      if (!configs.has(id)) configs.set(id, { id, name, wire, baseUrl, envKey: keys });
    }
  }
  return [...configs.values()].toSorted((a, b) => a.id.localeCompare(b.id));
}
