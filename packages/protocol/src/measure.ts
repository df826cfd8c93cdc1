/**
 * Points where work is timed for whoever measures, so that no interface has to carry it. They are no facts: those
 * are events. While nobody listens, a point costs one comparison. Listeners are of the whole process, so what is published
 * names its journal where there may be several, and they may not throw.
 */
import { toHeddleError } from "./errors.ts";

export interface MeasurePoint<T> {
  readonly isOn: boolean;
  publish(measured: T): void;
  listen(listener: (measured: T) => void): Disposable;
}

function point<T>(): MeasurePoint<T> {
  const listeners = new Set<(measured: T) => void>();
  return {
    get isOn() {
      return listeners.size > 0;
    },
    publish(measured) {
      for (const listener of listeners) listener(measured);
    },
    listen(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  };
}

/** Carries work out, and publishes how long it took when somebody listens. */
export async function measure<T, Of extends object>(
  at: MeasurePoint<Of & Timed>,
  of: Of,
  work: () => Promise<T>,
): Promise<T> {
  if (!at.isOn) return work();
  const [began, beganAt] = [performance.now(), Date.now()];
  const publish = (outcome: string): void => at.publish({ ...of, beganAt, ms: performance.now() - began, outcome });
  try {
    const result = await work();
    publish("ok");
    return result;
  } catch (error) {
    publish(toHeddleError(error).code);
    throw error;
  }
}

export interface Timed {
  /** By the wall clock. */
  readonly beganAt: number;
  readonly ms: number;
  /** `ok`, or the code of the refusal. */
  readonly outcome: string;
}

/** One append, from the moment it was ready to be stored. `of`: its journal. */
export const APPENDS = point<{ readonly of: object; readonly stream: string } & Timed>();
/** Appends that were committed together. */
export const GROUPS = point<{ readonly of: object; readonly appends: number }>();
/** A client that a door has refused for what it showed. `code`: why. */
export const REFUSALS = point<{ readonly code: string; readonly address: string }>();
/** Spans of traces that a collector took, or that were dropped because it did not. */
export const SPANS = point<{ readonly outcome: "sent" | "dropped"; readonly count: number }>();
/** A sandbox that was opened for a thread. */
export const SANDBOXES = point<{ readonly threadId: string } & Timed>();
