/** Logins as providers use them: a token is fetched for each request and renewed when it was refused. */
import type { CredentialSource, Outgoing, SecretListener } from "../providers/provider-auth.ts";
import type { WireName } from "../providers/providers.ts";

/** A token is renewed for as long as a server runs; one that ended so many renewals ago is not quoted any more. */
const MAX_REMEMBERED = 32;

export interface HandedOut extends Required<Pick<CredentialSource, "secrets" | "onSecrets">> {
  readonly add: (...secrets: readonly string[]) => void;
}

/** Secrets in use, to be removed from texts; listeners get each one before it is used. */
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
    onSecrets(listener) {
      listeners.push(listener);
      if (known.length > 0) listener(known);
    },
  };
}

interface TokenSourceOptions<L> extends Pick<CredentialSource, "source" | "baseUrl" | "address"> {
  /** The login as it is now; another one where `rejected` is its token. */
  readonly login: (signal: AbortSignal, rejected?: string) => Promise<L>;
  readonly headers: (login: L, wire: WireName, outgoing: Outgoing) => Readonly<Record<string, string>>;
  /** Besides the token. */
  readonly secretsOf?: (login: L) => readonly string[];
  readonly handedOut?: HandedOut;
}

export function tokenSource<L extends { readonly accessToken: string }>(
  options: TokenSourceOptions<L>,
): CredentialSource {
  const { login, headers, secretsOf, handedOut = createHandedOut(), ...facts } = options;
  let last: string | undefined;
  const use = async (signal: AbortSignal, rejected?: string): Promise<L> => {
    const used = await login(signal, rejected);
    handedOut.add(used.accessToken, ...(secretsOf?.(used) ?? []));
    return used;
  };
  return {
    ...facts,
    async headers(wire, signal, outgoing) {
      const used = await use(signal);
      last = used.accessToken;
      return headers(used, wire, outgoing);
    },
    renew: async (signal) => (await use(signal, last)).accessToken !== last,
    secrets: handedOut.secrets,
    onSecrets: handedOut.onSecrets,
  };
}
