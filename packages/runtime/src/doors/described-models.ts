/** Models with their limits and prices; the catalog is loaded by whoever asks for them. */
import type { Accounts } from "@heddle/models/accounts";
import { describeModels } from "@heddle/models/catalog";
import type { HostFacts } from "@heddle/server/http";

type Listings = Awaited<ReturnType<HostFacts["models"]>>;

export async function describedModels(
  accounts: Accounts,
  provider: string | undefined,
  home: string,
): Promise<Listings> {
  const listings = await accounts.models({ provider, isForced: false });
  return listings.map((listing) => ({
    ...listing,
    models: describeModels(accounts.registry.model(listing.provider).config, listing, home),
  }));
}
