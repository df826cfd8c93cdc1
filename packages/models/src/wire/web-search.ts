/** Which providers search the web for their models. */
import type { SearchOptions } from "@heddle/protocol";
import { isHostedElsewhere } from "../providers/provider-auth.ts";
import type { Provider } from "../providers/providers.ts";

/** Why it cannot be searched as asked; undefined: it can. */
export function searchProblem(
  { wire, auth }: Pick<Provider, "wire" | "auth">,
  model: string,
  { allowedDomains }: SearchOptions = {},
): string | undefined {
  const isWithout = `does not search the web for ${model}`;
  switch (wire) {
    case "openai-responses":
      return undefined;
    case "anthropic":
      // The searches are a service of the maker's own API.
      return isHostedElsewhere({ wire, auth }) ? isWithout : undefined;
    case "gemini":
      // Before its third generation it takes no search beside tools of others.
      if (/gemini-[12]([.-]|$)/.test(model)) return isWithout;
      return allowedDomains === undefined ? undefined : "cannot be limited to tools.web_search.allowed_domains";
    default:
      return isWithout;
  }
}
