/** Turns that this server has begun, at any of its doors: they run on without their clients, and end with the server. */
import type { Heddle } from "@heddle/agent";

/** An interrupted turn ends within six seconds; its followers get a moment more. */
const TURNS_END_MS = 6_500;
const STOPPING = { code: "turn.interrupted", message: "the server is stopping" } as const;

export class RunningTurns {
  readonly #heddle: Pick<Heddle, "releaseTurn">;
  readonly #running = new Map<string, Promise<void>>();
  readonly #stopping = new Map<string, Promise<void>>();
  /** One for all that wait: several doors close one after the other. */
  #overdue: Promise<void> | undefined;
  #isDraining = false;

  constructor(heddle: Pick<Heddle, "releaseTurn">) {
    this.#heddle = heddle;
  }

  /** A repeated request brings a promise of its own for the same end. */
  add<Handle extends { readonly turnId: string; readonly done: Promise<unknown> }>(handle: Handle): Handle {
    const { turnId, done } = handle;
    // Its end is in the journal; a record that could not be written is the journal's to report.
    const ended = done.then(
      () => void this.#running.delete(turnId),
      () => void this.#running.delete(turnId),
    );
    if (!this.#running.has(turnId)) this.#running.set(turnId, ended);
    return handle;
  }

  /** Nothing new is begun here any more. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** When none runs any more. */
  async finished(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Tells each of them to stop, once, and waits for them, not for ever. What only waits for an answer is left as it is. */
  async end(): Promise<void> {
    this.#isDraining = true;
    for (const [turnId, ended] of this.#running) {
      if (!this.#stopping.has(turnId)) this.#stopping.set(turnId, this.#stop(turnId, ended));
    }
    this.#overdue ??= new Promise((resolve) => setTimeout(resolve, TURNS_END_MS).unref());
    await Promise.race([Promise.allSettled(this.#stopping.values()), this.#overdue]);
  }

  async #stop(turnId: string, ended: Promise<void>): Promise<void> {
    if ((await this.#heddle.releaseTurn(turnId, STOPPING)) === "ending") await ended;
  }
}
