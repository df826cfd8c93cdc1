/**
 * Points where work is timed for whoever measures, by name, so that no interface has to carry it. They are no facts: those
 * are events. While nobody listens, a point costs one comparison. Listeners are of the whole process, so what is published
 * names its journal where there may be several.
 */
import { channel } from "node:diagnostics_channel";
import { toHeddleError } from "./errors.ts";

export interface MeasurePoint<T> {
  readonly isOn: boolean;
  publish(measured: T): void;
  listen(listener: (measured: T) => void): Disposable;
}

function point<T>(name: string): MeasurePoint<T> {
  const on = channel(`heddle:${name}`);
  return {
    get isOn() {
      return on.hasSubscribers;
    },
    publish: (measured) => on.publish(measured),
    listen(listener) {
      // Only this point publishes there.
      const receive = (measured: unknown): void => listener(measured as T);
      on.subscribe(receive);
      return { [Symbol.dispose]: () => on.unsubscribe(receive) };
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
export const APPENDS = point<{ readonly of: object; readonly stream: string } & Timed>("append");
/** Appends that were committed together. */
export const GROUPS = point<{ readonly of: object; readonly appends: number }>("append-group");
/** A sandbox that was opened for a thread. */
export const SANDBOXES = point<{ readonly threadId: string } & Timed>("sandbox");
