/** Which version both sides speak: the highest in both ranges. */
export const CHAT_PROTOCOL = { min: 1, max: 1 } as const;

export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** undefined: there is none. */
export function negotiate(theirs: VersionRange, ours: VersionRange = CHAT_PROTOCOL): number | undefined {
  const version = Math.min(theirs.max, ours.max);
  return version >= Math.max(theirs.min, ours.min) ? version : undefined;
}
