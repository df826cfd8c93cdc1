/** Turns that this server has begun for whoever asked: they run on without their clients, and end with the server. */
import type { Author } from "@heddle/protocol";
import type { Heddle, StartTurn, TurnHandle } from "@heddle/agent";

export class RunningTurns {
  readonly #heddle: Heddle;
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(heddle: Heddle) {
    this.#heddle = heddle;
  }

  async startTurn(start: StartTurn, by: Author): Promise<TurnHandle> {
    const handle = await this.#heddle.as(by).startTurn(start);
    // Its end is in the journal; a record that could not be written is the journal's to report.
    const ended = handle.done.catch(() => undefined).finally(() => this.#running.delete(handle.turnId));
    this.#running.set(handle.turnId, ended);
    return handle;
  }

  /** Tells all of them to stop, and waits no longer than it is given. */
  async end(deadlineMs: number): Promise<void> {
    const ended = [...this.#running.values()];
    if (ended.length === 0) return;
    const reason = { code: "turn.interrupted", message: "the server is stopping" } as const;
    await Promise.allSettled([...this.#running.keys()].map((turnId) => this.#heddle.letGo(turnId, reason)));
    const deadline = Promise.withResolvers<void>();
    const timer = setTimeout(deadline.resolve, deadlineMs);
    await Promise.race([Promise.all(ended), deadline.promise]);
    clearTimeout(timer);
  }
}
