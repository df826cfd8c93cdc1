/** Which providers search the web for their models. */
import type { Provider } from "./providers.ts";

/** Gemini before its third generation takes no search beside tools of others. */
export function searchesWeb({ wire }: Pick<Provider, "wire">, model: string): boolean {
  if (wire === "gemini") return !/gemini-[12]([.-]|$)/.test(model);
  return wire === "openai-responses" || wire === "anthropic";
}
