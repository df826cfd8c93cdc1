/** Questions to the evidence are loaded with the first of them: a run that asks none pays nothing. */
import type { EvidenceQueries } from "../../queries/evidence.ts";
import type { EvidenceStore } from "./evidence.ts";

export function lazyEvidence(store: EvidenceStore): EvidenceQueries {
  let loaded: Promise<EvidenceQueries> | undefined;
  const load = (): Promise<EvidenceQueries> =>
    (loaded ??= import("./evidence.ts").then(({ evidenceQueries }) => evidenceQueries(store)));
  return {
    query: async (query, limits) => (await load()).query(query, limits),
    count: async (query, limits) => (await load()).count(query, limits),
    get: async (id) => (await load()).get(id),
    beginningWith: async (prefix, options) => (await load()).beginningWith(prefix, options),
    ancestors: async (id, limit) => (await load()).ancestors(id, limit),
    descendants: async (id, limit) => (await load()).descendants(id, limit),
    forks: async (id) => (await load()).forks(id),
    async *subscribe(query, options) {
      yield* (await load()).subscribe(query, options);
    },
  };
}
