import type { EventBody, EvidenceChain, EvidenceEntry, EvidencePage, EvidenceQuery } from "@heddle/protocol";

/** With the whole event that it stands for. */
export interface EvidenceRecord extends EvidenceEntry {
  readonly body: EventBody;
}

export interface QueryLimits {
  readonly signal?: AbortSignal | undefined;
  /** Then `evidence.timeout`; absent: ten seconds. */
  readonly timeoutMs?: number | undefined;
}

export interface EvidenceFork {
  readonly threadId: string;
  /** It begins with the events of the entry's thread up to this version. */
  readonly version: number;
}

/**
 * Entries are ordered by their positions, newest first unless asked otherwise. Those of deleted threads are in no answer. A
 * query that cannot be answered in full is an error, never a shorter list: an unknown field is `usage.invalid`.
 */
export interface EvidenceQueries {
  /** Pages by `next` neither repeat nor pass over an entry, whatever is appended meanwhile. */
  query(query: EvidenceQuery, limits?: QueryLimits): Promise<EvidencePage>;
  count(query: EvidenceQuery, limits?: QueryLimits): Promise<number>;
  get(id: string): Promise<EvidenceRecord | undefined>;
  /** Ids of entries that begin so, in the order of the ids. */
  beginningWith(prefix: string, options: { readonly limit: number }): Promise<readonly string[]>;
  /** What the entry replies to, and so on: nearest first, without the entry. */
  ancestors(id: string, limit?: number): Promise<EvidenceChain>;
  /** What replies to the entry, and to that, oldest first. */
  descendants(id: string, limit?: number): Promise<EvidenceChain>;
  /** Threads whose past holds the entry. */
  forks(id: string): Promise<readonly EvidenceFork[]>;
  /**
   * Entries as they are committed, oldest first: after a position, or from now on. Whoever resumes after the last one seen
   * misses none. Neither `order` nor `limit` nor `cursor` apply.
   */
  subscribe(
    query: EvidenceQuery,
    options: { readonly after?: number; readonly signal: AbortSignal },
  ): AsyncIterable<EvidenceEntry>;
}
