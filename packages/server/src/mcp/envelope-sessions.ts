/**
 * Sessions in envelopes of clients that come over HTTP, where no connection says that a client has gone. With the handshake each
 * client has one of its own, under an id that is made here; requests of the stateless era under one token share one. They end
 * when they are silent for too long, by a request, and with the server.
 */
import { randomUUID } from "node:crypto";
import { HeddleError } from "@heddle/protocol";
import type { EnvelopeSessionOptions } from "./envelope-session.ts";
import { envelopeSurface, type EnvelopeSurface } from "./envelope-surface.ts";

/** Each may have a sandbox of its own. */
const MAX_SESSIONS = 128;
/** A session that nobody has used for so long makes room for another; its turn has ended by then. */
const UNUSED_MS = 31 * 60_000;

interface Entry {
  readonly surface: EnvelopeSurface;
  usedAt: number;
}

export class EnvelopeSessions {
  readonly #entries = new Map<string, Entry>();

  /** For a client that shakes hands: the id that it sends from here on. */
  begin(options: EnvelopeSessionOptions): { readonly id: string; readonly surface: EnvelopeSurface } {
    const id = randomUUID();
    return { id, surface: this.#add(keyOf(options, id), options) };
  }

  /** undefined: there is none, or no more; a client with the handshake begins another. */
  find(options: EnvelopeSessionOptions, id: string): EnvelopeSurface | undefined {
    return this.#use(keyOf(options, id));
  }

  /** Of all requests of the stateless era; `isNew`: the client connects, and may begin again after somebody ended it. */
  async shared(options: EnvelopeSessionOptions, { isNew }: { readonly isNew: boolean }): Promise<EnvelopeSurface> {
    const key = keyOf(options, "");
    const known = this.#use(key);
    if (known === undefined) return this.#add(key, options);
    if (!isNew || !(await known.session.isStopped())) return known;
    this.#entries.delete(key);
    return this.#use(key) ?? this.#add(key, options);
  }

  /** False: there is none. */
  async end(options: EnvelopeSessionOptions, id: string): Promise<boolean> {
    const key = keyOf(options, id);
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    await entry?.surface[Symbol.asyncDispose]();
    return entry !== undefined;
  }

  #use(key: string): EnvelopeSurface | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.usedAt = performance.now();
    return entry?.surface;
  }

  #add(key: string, options: EnvelopeSessionOptions): EnvelopeSurface {
    const now = performance.now();
    for (const [old, { usedAt }] of this.#entries) if (now - usedAt > UNUSED_MS) this.#entries.delete(old);
    if (this.#entries.size >= MAX_SESSIONS)
      throw new HeddleError("door.overloaded", `${MAX_SESSIONS} sessions of MCP clients are open; end one`);
    const surface = envelopeSurface(options);
    this.#entries.set(key, { surface, usedAt: now });
    return surface;
  }
}

/** Nobody reaches the session of another by its id. */
function keyOf({ principal, envelope }: EnvelopeSessionOptions, id: string): string {
  return JSON.stringify([principal.role, principal.name, envelope, id]);
}
