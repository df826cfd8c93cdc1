/** Notifications that a call causes are sent to its client after the answer. */
import type { Reply } from "./peer.ts";

/** More than any answer needs. */
const MAX_HELD = 10_000;

export class Held {
  /** What waits, by the thread that is held; under undefined, where everything is. */
  readonly #waiting = new Map<string | undefined, (() => void)[]>();
  readonly #holds = new Map<string | undefined, number>();

  /** Nothing of a thread, or nothing at all, is sent until it is released. */
  hold(threadId?: string): Disposable {
    this.#holds.set(threadId, (this.#holds.get(threadId) ?? 0) + 1);
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#release(threadId);
        isHeld = false;
      },
    };
  }

  /** False: too much waits already. */
  tell(threadId: string | undefined, tell: () => void): boolean {
    const held = this.#holds.has(undefined) ? undefined : threadId;
    if (!this.#holds.has(held)) {
      tell();
      return true;
    }
    const waiting = this.#waiting.get(held) ?? [];
    if (waiting.length >= MAX_HELD) return false;
    // Of a thread that is held as well it waits on.
    waiting.push(held === threadId ? tell : () => this.tell(threadId, tell));
    this.#waiting.set(held, waiting);
    return true;
  }

  #release(threadId: string | undefined): void {
    const left = (this.#holds.get(threadId) ?? 0) - 1;
    if (left > 0) return void this.#holds.set(threadId, left);
    const waiting = this.#waiting.get(threadId) ?? [];
    this.#holds.delete(threadId);
    this.#waiting.delete(threadId);
    for (const tell of waiting) tell();
  }
}

export async function heldBack(
  connection: { hold(threadId?: string): Disposable },
  threadId: string | undefined,
  carryOut: () => Promise<unknown>,
): Promise<Reply & { readonly after: () => void }> {
  const held = connection.hold(threadId);
  try {
    return { result: await carryOut(), after: () => held[Symbol.dispose]() };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}
