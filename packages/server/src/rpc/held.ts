/** What a call sets going is told to its client after the answer: notifications wait while an answer is on its way. */
import type { Reply } from "./peer.ts";

/** More is no answer that takes a moment. */
const MAX_HELD = 10_000;

export class Held {
  #waiting: (() => void)[] = [];
  #holds = 0;

  /** Nothing is told until it is released. */
  hold(): Disposable {
    this.#holds += 1;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds -= 1;
        if (this.#holds === 0) for (const tell of this.#waiting.splice(0)) tell();
      },
    };
  }

  /** False: too much waits already. */
  tell(tell: () => void): boolean {
    if (this.#holds === 0) tell();
    else if (this.#waiting.length >= MAX_HELD) return false;
    else this.#waiting.push(tell);
    return true;
  }
}

export async function heldBack(
  connection: { hold(): Disposable },
  carryOut: () => Promise<unknown>,
): Promise<Reply & { readonly after: () => void }> {
  const held = connection.hold();
  try {
    return { result: await carryOut(), after: () => held[Symbol.dispose]() };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}
