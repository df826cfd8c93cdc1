/** Pages that a provider names for a text. */
import type { Source } from "@heddle/protocol";
import { record, text, type Json } from "./untrusted.ts";

/** Of one text; more are not read by anybody. */
const MAX_SOURCES = 100;

/** As a field of a part: each page once, none where nothing was named. */
export function sourcesIn(named: readonly Json[]): { readonly sources?: Source[] } {
  const found = new Map<string, Source>();
  for (const one of named) {
    const fields = record(one);
    const url = text(fields?.["url"]) ?? text(fields?.["uri"]) ?? "";
    const title = text(fields?.["title"]) ?? "";
    if (url === "" || found.has(url)) continue;
    if (found.size === MAX_SOURCES) break;
    found.set(url, title === "" ? { url } : { url, title });
  }
  return found.size === 0 ? {} : { sources: [...found.values()] };
}
