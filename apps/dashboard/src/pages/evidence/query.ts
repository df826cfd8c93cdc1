/** What is typed into the filter of the record: `name:value` narrows, everything else is words to find. */
import type { EvidenceFilter } from "./filter.ts";

const LISTS = new Set(["type", "author", "task", "thread", "claim", "tags"]);

export function queryOf(text: string): EvidenceFilter {
  const words: string[] = [];
  const filter: Record<string, unknown> = {};
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const [, name = "", value = ""] = /^(\w+):(.+)$/.exec(part) ?? [];
    if (LISTS.has(name)) filter[name] = value.split(",");
    else if (name === "since" || name === "before") {
      const at = Date.parse(value);
      if (!Number.isNaN(at)) filter[name] = at;
    } else words.push(part);
  }
  return { ...filter, ...(words.length === 0 ? {} : { text: words.join(" ") }) };
}
