/**
 * Connections that have not shown who they are have a number of slots of their own. When a new one comes and all are
 * taken, the oldest goes: whoever holds connections open without a word keeps nobody out, and those who have shown a token
 * are never let go for it.
 */
import type { Socket } from "node:net";
import type { DoorServer } from "./server.ts";

/** More than come at once from people and programs that are about to show their token. */
const MAX_STRANGERS = 512;

export class Strangers {
  // By their names: over TLS the connection that came and the one that is read from are two objects.
  readonly #open = new Map<string, Socket>();

  watch(server: DoorServer): void {
    server.on("connection", (socket: Socket) => {
      const name = nameOf(socket);
      this.#open.set(name, socket);
      socket.once("close", () => {
        if (this.#open.get(name) === socket) this.#open.delete(name);
      });
      if (this.#open.size > MAX_STRANGERS) this.#dropOldest();
    });
    // All slots of the door are taken: the next who comes finds one.
    server.on("drop", () => this.#dropOldest());
  }

  /** It has shown who it is. */
  know(socket: Socket): void {
    this.#open.delete(nameOf(socket));
  }

  #dropOldest(): void {
    const [oldest] = this.#open;
    if (oldest === undefined) return;
    this.#open.delete(oldest[0]);
    oldest[1].destroy();
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ""} ${remotePort ?? ""}`;
}
