/** Secrets that were handed out, for whoever takes them out of texts; those who listen hear of each before it is used. */
import type { SecretListener } from "../provider-auth.ts";

/** A token is renewed for as long as a server runs; nobody quotes one that ended so many renewals ago. */
const MAX_REMEMBERED = 32;

export interface HandedOut {
  readonly add: (...secrets: readonly string[]) => void;
  readonly secrets: () => readonly string[];
  readonly hear: (listener: SecretListener) => void;
}

export function createHandedOut(): HandedOut {
  let known: readonly string[] = [];
  const listeners: SecretListener[] = [];
  return {
    add(...secrets) {
      const fresh = secrets.filter((secret) => secret !== "" && !known.includes(secret));
      if (fresh.length === 0) return;
      known = [...known, ...fresh].slice(-MAX_REMEMBERED);
      for (const listener of listeners) listener(fresh);
    },
    secrets: () => known,
    hear(listener) {
      listeners.push(listener);
      if (known.length > 0) listener(known);
    },
  };
}
