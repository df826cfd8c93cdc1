/**
 * What a verification can find: a code, the level that finds it, and what it says about the record.
 *   tampered: it is not what was written · violation: it says that a bound was crossed, or contradicts itself
 *   unproven: what would be needed to judge is missing · warning: nothing is in doubt
 */
export const CODES = {
  gap: { level: 1, weight: "tampered" },
  broken_link: { level: 1, weight: "tampered" },
  entry_altered: { level: 1, weight: "tampered" },
  body_altered: { level: 1, weight: "tampered" },
  file_corrupt: { level: 1, weight: "tampered" },
  body_purged: { level: 1, weight: "warning" },
  head_mismatch: { level: 2, weight: "tampered" },
  truncated_before_checkpoint: { level: 2, weight: "tampered" },
  rewritten_before_checkpoint: { level: 2, weight: "tampered" },
  checkpoint_forged: { level: 2, weight: "tampered" },
  checkpoint_missing: { level: 2, weight: "unproven" },
  witness_missing: { level: 2, weight: "unproven" },
  key_missing: { level: 2, weight: "unproven" },
  wrong_key: { level: 2, weight: "tampered" },
  no_beginning: { level: 3, weight: "violation" },
  unfinished_call: { level: 3, weight: "violation" },
  unfinished_item: { level: 3, weight: "violation" },
  ended_twice: { level: 3, weight: "violation" },
  orphan_reply: { level: 3, weight: "violation" },
  author_changed: { level: 3, weight: "violation" },
  not_left: { level: 3, weight: "violation" },
  clock_backwards: { level: 3, weight: "warning" },
  tool_outside_envelope: { level: 4, weight: "violation" },
  path_outside_envelope: { level: 4, weight: "violation" },
  host_outside_envelope: { level: 4, weight: "violation" },
  protected_path: { level: 4, weight: "violation" },
  approval_missing: { level: 4, weight: "violation" },
  limit_exceeded: { level: 4, weight: "violation" },
  hop_without_edge: { level: 4, weight: "violation" },
  hop_without_authority: { level: 4, weight: "violation" },
  guard_unmet: { level: 4, weight: "violation" },
  gate_unproven: { level: 4, weight: "violation" },
  above_ceiling: { level: 4, weight: "violation" },
  message_without_authority: { level: 4, weight: "violation" },
  beyond_message: { level: 4, weight: "violation" },
  spec_unknown: { level: 4, weight: "unproven" },
  unexplained_change: { level: 5, weight: "violation" },
  changed_meanwhile: { level: 5, weight: "warning" },
  not_examined: { level: 5, weight: "warning" },
  artifact_missing: { level: 5, weight: "unproven" },
  blob_altered: { level: 5, weight: "violation" },
  blob_collected: { level: 5, weight: "warning" },
  verdict_differs: { level: 6, weight: "violation" },
  nothing_to_verify: { level: 1, weight: "unproven" },
  still_running: { level: 3, weight: "unproven" },
} as const satisfies Readonly<Record<string, { readonly level: Level; readonly weight: Weight }>>;

export type Level = 1 | 2 | 3 | 4 | 5 | 6;
export type Weight = "tampered" | "violation" | "unproven" | "warning";
export type Code = keyof typeof CODES;

export interface Finding {
  readonly level: Level;
  readonly code: Code;
  readonly weight: Weight;
  readonly message: string;
  readonly stream?: string;
  readonly version?: number;
}

export interface Where {
  readonly stream?: string | undefined;
  readonly version?: number | undefined;
}

export function finding(code: Code, message: string, { stream, version }: Where = {}): Finding {
  return {
    ...CODES[code],
    code,
    message,
    ...(stream === undefined ? {} : { stream }),
    ...(version === undefined ? {} : { version }),
  };
}

export type Report = (code: Code, message: string, where: Where) => void;

/** The first of each code matter; a broken writer would fill memory with the rest. */
const MAX_OF_A_CODE = 100;

/** Keeps the first findings of each code and counts all of them. */
export function collectFindings() {
  const kept: Finding[] = [];
  const counts = new Map<Code, number>();
  const report: Report = (code, message, where) => {
    const count = (counts.get(code) ?? 0) + 1;
    counts.set(code, count);
    if (count <= MAX_OF_A_CODE) kept.push(finding(code, message, where));
  };
  return { report, kept, total: (): number => [...counts.values()].reduce((sum, count) => sum + count, 0) };
}
