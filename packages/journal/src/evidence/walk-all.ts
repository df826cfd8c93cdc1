/** One walk of a store or of a stream, with pauses, and what was known of its damage before. */
import { setImmediate as breathe } from "node:timers/promises";
import type { Damage, VerifyReport, VerifyWatch } from "../journal.ts";
import type { StoredRows } from "./stored-rows.ts";
import { walkRange, type WalkedRange } from "./walk.ts";

interface WalkOptions {
  readonly onProgress?: VerifyWatch["onProgress"] | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly stream: string | undefined;
  readonly of: number | undefined;
}

export async function walkAll(
  rows: StoredRows,
  { stream, of, onProgress, signal }: WalkOptions,
): Promise<readonly WalkedRange[]> {
  const steps = walkRange(rows, { after: 0, stream });
  for (let events = 0; ;) {
    const { done, value } = await steps.next();
    if (done === true) return [value];
    events += value;
    onProgress?.({ events, of });
    await breathe();
    signal?.throwIfAborted();
  }
}

/** Damage found on opening comes first: of an unreadable file, the rest only shows that nothing is there. */
export function withKnown(report: VerifyReport, known: Damage | undefined, stream: string | undefined): VerifyReport {
  if (known === undefined || report.damage.some(({ message }) => message === known.message)) return report;
  const concerns = stream === undefined || known.stream === undefined || known.stream === stream;
  return concerns ? { ...report, damage: [known, ...report.damage] } : report;
}
