/**
 * Files settle when they are the same at two looks. They come in the order of the look that first saw them, then of their
 * arrival.
 */
import type { FileEntry } from "./inbox-folder.ts";

/** File system clocks tick every few milliseconds; within a tick 9.md comes before 10.md. */
const byName = new Intl.Collator("en", { numeric: true });

interface Seen {
  readonly sizeBytes: number;
  readonly modifiedAt: number;
  readonly identity: string;
  readonly since: number;
  readonly order: number;
}

export type Looks = ReturnType<typeof createLooks>;

export function createLooks(settleMs: number) {
  let seen = new Map<string, Seen>();
  let count = 0;
  const offUntil = new Map<string, number>();
  return {
    /** The settled ones, in order. */
    look(entries: readonly FileEntry[]): readonly FileEntry[] {
      const now = performance.now();
      const byArrival = entries.toSorted((a, b) => a.arrivedAt - b.arrivedAt || byName.compare(a.path, b.path));
      const next = new Map<string, Seen>();
      for (const [path, until] of offUntil) if (until <= now) offUntil.delete(path);
      const settled: { readonly entry: FileEntry; readonly order: number }[] = [];
      for (const entry of byArrival) {
        const before = seen.get(entry.path);
        const isSame = before !== undefined && isUnchanged(before, entry);
        const order = before?.order ?? (count += 1);
        const { sizeBytes, modifiedAt, identity } = entry;
        next.set(entry.path, { sizeBytes, modifiedAt, identity, order, since: isSame ? before.since : now });
        if (isSame && now - before.since >= settleMs && !offUntil.has(entry.path)) settled.push({ entry, order });
      }
      seen = next;
      return settled.toSorted((a, b) => a.order - b.order).map(({ entry }) => entry);
    },
    /** Does not look at it before then. */
    putOff(path: string, ms: number): void {
      offUntil.set(path, performance.now() + ms);
    },
    /** When something that has not settled is to be looked at again. */
    nextLook(): number | undefined {
      let at: number | undefined;
      for (const [path, { since }] of seen) {
        at = Math.min(at ?? Infinity, Math.max(since + settleMs, offUntil.get(path) ?? 0));
      }
      return at;
    },
  };
}

function isUnchanged(before: Seen, entry: FileEntry): boolean {
  return (
    before.sizeBytes === entry.sizeBytes && before.modifiedAt === entry.modifiedAt && before.identity === entry.identity
  );
}
