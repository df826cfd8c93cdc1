/**
 * Prepares appends for the group that commits them. A short one is added at once. A long one takes turns with
 * everything else, and others overtake it, but none of the same stream: within a stream appends keep the order of their
 * calls.
 */
import { prepareInSteps, type PreparedAppend } from "./prepare.ts";
import { breathe, LONG_CHARS } from "./breathe.ts";
import type { Append, Appended } from "../journal.ts";
import type { Redactor } from "../redaction/redact.ts";
import { atOnce, inTurns } from "./steps.ts";

export type Preparing = ReturnType<typeof createPreparing>;

export function createPreparing(redactor: Redactor, add: (prepared: PreparedAppend) => Promise<Appended>) {
  /** By stream: the last pending append. */
  const ahead = new Map<string, Promise<unknown>>();

  async function addBehind(append: Append, isLong: boolean): Promise<Appended> {
    const { stream } = append;
    const before = ahead.get(stream);
    const steps = prepareInSteps(append, redactor);
    // Wrapped, so that it is not awaited: the next one may follow as soon as it is added.
    const adding = (async () => {
      if (isLong) await breathe();
      const prepared = isLong ? await inTurns(steps) : atOnce(steps);
      await before;
      return { appended: add(prepared) };
    })();
    const passed = (): void => {
      if (ahead.get(stream) === isAdded) ahead.delete(stream);
    };
    const isAdded = adding.then(passed, passed);
    ahead.set(stream, isAdded);
    const { appended } = await adding;
    const done = await appended;
    // Writing took its time; the caller continues in a turn of its own.
    if (isLong) await breathe();
    return done;
  }

  return {
    async append(append: Append): Promise<Appended> {
      const isLong = charsLeft(append.events, LONG_CHARS) < 0;
      if (isLong || ahead.has(append.stream)) return addBehind(append, isLong);
      return add(atOnce(prepareInSteps(append, redactor)));
    },
    /** Resolves when earlier calls have been added, of one stream or of all. */
    added: (stream?: string): Promise<unknown> | undefined =>
      stream === undefined ? Promise.all(ahead.values()) : ahead.get(stream),
  };
}

/** What a value leaves of a bound when it is written down, roughly; below 0 it stops. */
function charsLeft(value: unknown, most: number): number {
  if (typeof value === "string") return most - value.length;
  if (typeof value !== "object" || value === null) return most - 1;
  let left = most;
  for (const [key, entry] of Object.entries(value)) {
    left = charsLeft(entry, left - key.length);
    if (left < 0) break;
  }
  return left;
}
