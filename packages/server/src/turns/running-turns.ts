/** Turns that this server has begun, at any of its doors: they run on without their clients, and end with the server. */
import type { Heddle } from "@heddle/agent";
import { HeddleError } from "@heddle/protocol";

/** An interrupted turn ends within six seconds; its followers get a moment more. */
const TURNS_END_MS = 6_500;
/** After these a turn may be the last one that runs. */
const DECIDES: ReadonlySet<string> = new Set(["turn.completed", "approval.requested"]);
const STOPPING = { code: "turn.interrupted", message: "the server is stopping" } as const;

export class RunningTurns {
  readonly #heddle: Pick<Heddle, "releaseTurn" | "journal">;
  readonly #running = new Map<string, Promise<void>>();
  /** Asked for, and not admitted yet. */
  readonly #beginning = new Set<Promise<unknown>>();
  readonly #stopping = new Map<string, Promise<void>>();
  /** One for all that wait: several doors close one after the other. */
  #overdue: Promise<void> | undefined;
  #isDraining = false;

  constructor(heddle: Pick<Heddle, "releaseTurn" | "journal">) {
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

  /** Begins one, unless the server is stopping. */
  async begin<Handle extends { readonly turnId: string; readonly done: Promise<unknown> }>(
    start: () => Promise<Handle>,
  ): Promise<Handle> {
    if (this.#isDraining)
      throw new HeddleError(
        "door.overloaded",
        "the server is stopping and begins nothing new; ask again when it is back",
      );
    const beginning = start();
    this.#beginning.add(beginning);
    try {
      return this.add(await beginning);
    } finally {
      this.#beginning.delete(beginning);
    }
  }

  /** Begins nothing new. Resolves when each that runs has ended or only waits for an answer, or when the signal aborts. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true;
    const { journal } = this.#heddle;
    await Promise.allSettled(this.#beginning);
    const after = await journal.position();
    if (await this.#isQuiet()) return;
    for await (const { body } of journal.tail({ after, signal })) {
      if (DECIDES.has(body.type) && (await this.#isQuiet())) return;
    }
  }

  async #isQuiet(): Promise<boolean> {
    const { threads } = this.#heddle.journal;
    const [open, asked] = await Promise.all([threads.openTurns(), threads.openApprovals()]);
    const waiting = new Set(asked.map(({ turnId }) => turnId));
    return !open.some(({ id }) => this.#running.has(id) && !waiting.has(id));
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
