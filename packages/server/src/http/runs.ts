/** Turns that were begun over HTTP and run in this process: nobody's connection, so the door ends them when it closes. */
import type { Heddle, TurnHandle } from "@heddle/agent";

/** A turn that was told to stop ends within six seconds. */
const TURNS_END_MS = 6_500;

export class Runs implements AsyncDisposable {
  readonly #heddle: Heddle;
  readonly #running = new Map<string, Promise<void>>();
  #ending: Promise<void> | undefined;

  constructor(heddle: Heddle) {
    this.#heddle = heddle;
  }

  add({ turnId, done }: TurnHandle): void {
    const forget = (): void => void this.#running.delete(turnId);
    // Its end is in the journal; a record that could not be written is the journal's to report. A repeated request brings
    // a promise of its own for the same end.
    const ended = done.then(forget, forget);
    if (!this.#running.has(turnId)) this.#running.set(turnId, ended);
  }

  /** Waits once, however often it is called. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const reason = { code: "turn.interrupted", message: "the server is stopping" } as const;
    const ended = [...this.#running.values()];
    await Promise.allSettled([...this.#running.keys()].map((turnId) => this.#heddle.letGo(turnId, reason)));
    let late: NodeJS.Timeout | undefined;
    const overdue = new Promise((resolve) => {
      late = setTimeout(resolve, TURNS_END_MS);
    });
    await Promise.race([Promise.all(ended), overdue]);
    clearTimeout(late);
  }
}
