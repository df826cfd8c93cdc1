/** Open WebSockets, each with its principal: one whose token was revoked is closed. */
import { HeddleError, reasonOf } from "@heddle/protocol";
import type { Channel } from "../rpc/channel.ts";
import type { Principal } from "../access/principals.ts";
import type { OnChannel } from "../transports/server.ts";

/** A quarter of all there may be. */
const MAX_OF_ONE = 128;

export interface GuestsOptions {
  readonly isStillGood: (principal: Principal) => Promise<boolean>;
  readonly lookMs: number;
  readonly log: (line: string) => void;
}

export class Guests implements Disposable {
  readonly #options: GuestsOptions;
  readonly #open = new Map<Channel, Principal>();
  readonly #looking: NodeJS.Timeout;

  constructor(options: GuestsOptions) {
    this.#options = options;
    this.#looking = setInterval(() => {
      this.#look().catch((error: unknown) => options.log(`the tokens could not be read: ${reasonOf(error)}`));
    }, options.lookMs);
    this.#looking.unref();
  }

  get size(): number {
    return this.#open.size;
  }

  /** `door.overloaded` for a principal with too many of them. */
  refuseCrowd(principal: Principal): void {
    const own = [...this.#open.values()].filter(({ name }) => name === principal.name);
    if (principal.role === "owner" || own.length < MAX_OF_ONE) return;
    throw new HeddleError("door.overloaded", `${MAX_OF_ONE} WebSockets of ${principal.name} are open already`);
  }

  admit(principal: Principal, onChannel: OnChannel): OnChannel {
    return (channel) => {
      this.#open.set(channel, principal);
      onChannel({
        name: channel.name,
        send: (text) => channel.send(text),
        close: () => channel.close(),
        open: (listener) =>
          channel.open({
            onMessage: (text) => listener.onMessage(text),
            onTooLong: () => listener.onTooLong(),
            onDrain: () => listener.onDrain(),
            onEnd: () => listener.onEnd(),
            onClose: () => {
              this.#open.delete(channel);
              listener.onClose();
            },
          }),
      });
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
  }

  async #look(): Promise<void> {
    for (const [channel, principal] of this.#open) {
      if (!(await this.#options.isStillGood(principal))) channel.close();
    }
  }
}
