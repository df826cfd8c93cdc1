/** Searches of the web by the keys that came before `web_search`. */
import type { SettingsPatch } from "@heddle/agent/settings";
import { defined } from "@heddle/protocol";
import type { ConfigFile } from "../config/schema.ts";

export function searchOfConfig({
  tools,
  features,
}: Pick<ConfigFile, "tools" | "features">): Pick<SettingsPatch, "impliedSearch" | "searchOptions"> {
  const asked = tools?.web_search;
  const impliedSearch = flagged(features) ?? (asked === undefined || asked === false ? undefined : "cached");
  if (typeof asked !== "object") return { impliedSearch };
  const { context_size: contextSize, allowed_domains: allowedDomains, location } = asked;
  return { impliedSearch, searchOptions: defined({ contextSize, allowedDomains, location }) };
}

function flagged(features: ConfigFile["features"]): SettingsPatch["impliedSearch"] {
  if (features?.web_search === true || features?.web_search_request === true) return "live";
  return features?.web_search_cached === true ? "cached" : undefined;
}
