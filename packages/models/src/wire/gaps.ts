/**
 * Events that could not be read, of a wire whose last event repeats the whole answer: they are passed over and counted, and
 * the answer fails only when something of it was lost with them.
 */
import type { Answer, Skipped } from "../answer.ts";
import { malformed, quote } from "../failure.ts";
import type { Provider } from "../providers.ts";

export interface Gaps {
  readonly skipped: Skipped | undefined;
  /** False: the answer has not moved on. */
  skip(data: string): false;
  /** What readers were shown is how the part begins, or is the part. */
  requireAgreement(shown: string, said: string): void;
  /** The last event has repeated so many parts. */
  requireWhole(repeated: number): void;
}

export function watchGaps(provider: Provider, answer: Answer): Gaps {
  let skipped: Skipped | undefined;

  function fail(what: string, { firstBytes }: Skipped): never {
    throw malformed(provider, `an event that is not JSON, and ${what}`, firstBytes);
  }

  return {
    get skipped() {
      return skipped;
    },
    skip(data) {
      skipped = { events: (skipped?.events ?? 0) + 1, firstBytes: skipped?.firstBytes ?? quote(provider, data) };
      return false;
    },
    requireAgreement(shown, said) {
      if (skipped !== undefined && !said.startsWith(shown)) fail("a part of its answer is missing", skipped);
    },
    requireWhole(repeated) {
      const isWhole = repeated > 0 && repeated >= answer.closedCount;
      if (skipped !== undefined && !isWhole) fail("its end does not repeat the answer", skipped);
    },
  };
}
