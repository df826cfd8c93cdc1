import type { Usage } from "@heddle/protocol";

export const USAGE_KEYS = ["day", "provider", "model", "workspace", "thread", "task"] as const;
export type UsageKey = (typeof USAGE_KEYS)[number];

export interface UsageSums {
  readonly requests: number;
  /** Requests without a known price. */
  readonly unpriced: number;
  readonly usage: Usage;
  readonly costUsd: number;
}

export interface UsageRequest {
  readonly by: readonly UsageKey[];
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly only?: Partial<Readonly<Record<UsageKey, string>>>;
  readonly limit: number;
  readonly skip?: number;
}

export interface UsageRow extends UsageSums {
  /** The keys of the row; empty: none, or of a deleted thread. */
  readonly of: Partial<Readonly<Record<UsageKey, string>>>;
}

export interface ThreadSums extends UsageSums {
  readonly threadId: string;
}

export interface UsageQueries {
  /** Of each of these threads that asked a model, open turns too. */
  ofThreads(threadIds: readonly string[]): Promise<readonly ThreadSums[]>;
  /** Newest day first, then by the names. */
  rows(request: UsageRequest): Promise<readonly UsageRow[]>;
}
