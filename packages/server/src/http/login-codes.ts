/**
 * Codes for logging a browser in: whoever may come in already is given one, and whoever shows it, once and within a
 * minute, comes in as the same principal. They are kept in memory by their hashes.
 */
import { createHash, randomBytes } from "node:crypto";
import { HeddleError } from "@heddle/protocol";
import type { Principal } from "../access/principals.ts";
import { WrongTokens } from "../access/wrong-tokens.ts";

const GOOD_FOR_MS = 60_000;
/** More than people ask for in a minute, and than one of them does: nobody uses up the codes of the others. */
const MAX_OPEN = 100;
const MAX_OPEN_OF_ONE = 20;

export class LoginCodes {
  readonly #isStillGood: (principal: Principal) => Promise<boolean>;
  readonly #open = new Map<string, { readonly principal: Principal; readonly until: number }>();
  readonly #wrong = new WrongTokens();

  constructor(isStillGood: (principal: Principal) => Promise<boolean>) {
    this.#isStillGood = isStillGood;
  }

  make(principal: Principal): { readonly code: string; readonly expiresAt: number } {
    for (const [hash, { until }] of this.#open) if (until <= performance.now()) this.#open.delete(hash);
    const own = [...this.#open.values()].filter((other) => other.principal.name === principal.name).length;
    const mayBeMore = principal.role === "owner" || this.#open.size < MAX_OPEN;
    if (!mayBeMore || own >= MAX_OPEN_OF_ONE) {
      const count = mayBeMore ? own : this.#open.size;
      throw new HeddleError("limit.reached", `${count} codes wait to be used; try again in a minute`);
    }
    const code = randomBytes(24).toString("base64url");
    this.#open.set(hashOf(code), { principal, until: performance.now() + GOOD_FOR_MS });
    return { code, expiresAt: Date.now() + GOOD_FOR_MS };
  }

  /** The principal it was made for; it is used up, whatever comes of it. */
  async take(code: string, address: string | undefined): Promise<Principal> {
    const hash = hashOf(code);
    const found = this.#open.get(hash);
    this.#open.delete(hash);
    if (found !== undefined && found.until > performance.now() && (await this.#isStillGood(found.principal))) {
      return found.principal;
    }
    if (this.#wrong.count(address)) throw new HeddleError("limit.reached", "too many wrong codes; wait a minute");
    const hint = "a code works once and for a minute; get another one with: heddle dashboard";
    throw new HeddleError("door.unauthorized", `the code is not valid; ${hint}`);
  }
}

function hashOf(code: string): string {
  return createHash("sha256").update(code).digest("base64url");
}
