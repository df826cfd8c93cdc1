/** Wrong tokens by address: more than a few in a minute are no typing mistakes. Whoever has a right one is never counted. */

const MAX_WRONG = 20;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

export class WrongTokens {
  readonly #seen = new Map<string, { count: number; readonly since: number }>();

  /** One more; true: too many. */
  count(address = ""): boolean {
    const now = performance.now();
    const known = this.#seen.get(address);
    if (known !== undefined && now - known.since < WINDOW_MS) return (known.count += 1) > MAX_WRONG;
    if (this.#seen.size >= MAX_ADDRESSES) this.#seen.clear();
    this.#seen.set(address, { count: 1, since: now });
    return false;
  }
}
