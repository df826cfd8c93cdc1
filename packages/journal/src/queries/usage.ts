/** Questions about token usage and costs, answered from the ledger. */
import type { Usage } from "@heddle/protocol";

/** What can be told apart. */
export const USAGE_KEYS = ["day", "provider", "model", "workspace", "thread", "task"] as const;
export type UsageKey = (typeof USAGE_KEYS)[number];

export interface UsageSums {
  readonly requests: number;
  /** Of these requests the price is not known. */
  readonly unpriced: number;
  readonly usage: Usage;
  readonly costUsd: number;
}

export interface UsageRequest {
  readonly by: readonly UsageKey[];
  /** Days, both included: `2026-11-15`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Only of these. */
  readonly only?: Partial<Readonly<Record<UsageKey, string>>>;
  readonly limit: number;
  /** Rows to pass over. */
  readonly skip?: number;
}

export interface UsageRow extends UsageSums {
  /** Of what was asked to be told apart; empty: belongs to none, or to a thread that was deleted. */
  readonly of: Partial<Readonly<Record<UsageKey, string>>>;
}

export interface UsageQueries {
  /** Newest day first, then by the names. */
  rows(request: UsageRequest): Promise<readonly UsageRow[]>;
}
