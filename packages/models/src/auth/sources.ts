/** Credentials as providers use them: asked for each request, renewed when refused, and never exchanged for another. */
import { HeddleError } from "@heddle/protocol";
import type { CredentialSource } from "../provider-auth.ts";
import { authHeader, type ProviderConfig } from "../providers.ts";
import { usableCodexLogin } from "./codex-auth.ts";
import { usableCopilot, type CopilotPlaces } from "./copilot.ts";
import type { ApiKeyCredential, CredentialKey } from "./credential.ts";
import { createHandedOut } from "./handed-out.ts";
import { openaiIssuer, type Issuer } from "./issuer.ts";
import { loginCommand, usableOAuth } from "./refresh.ts";
import type { CredentialStore } from "./store.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A ChatGPT login of Heddle's own store. */
export function oauthSource(options: {
  readonly store: CredentialStore;
  readonly issuer: Issuer;
  readonly key: CredentialKey;
}): CredentialSource {
  const { store, issuer, key } = options;
  const handedOut = createHandedOut();
  let last: string | undefined;
  return {
    source: "the stored login",
    baseUrl: issuer.apiBaseUrl,
    async headers(_wire, signal) {
      const login = await usableOAuth({ store, issuer, key, signal });
      last = login.accessToken;
      handedOut.add(last);
      return chatgptHeaders(issuer, login);
    },
    async renew(signal) {
      const login = await usableOAuth({ store, issuer, key, signal, rejected: last });
      return login.accessToken !== last;
    },
    secrets: handedOut.secrets,
    hear: handedOut.hear,
  };
}

/** A login at GitHub, as Copilot takes it. */
export function copilotSource(options: {
  readonly store: CredentialStore;
  readonly places: CopilotPlaces;
  readonly key: CredentialKey;
  /** As it is stored now. */
  readonly apiUrl: string;
}): CredentialSource {
  const { store, places, key } = options;
  const handedOut = createHandedOut();
  let last: string | undefined;
  let { apiUrl } = options;
  let place = apiUrl;
  const usable = async (signal: AbortSignal, rejected?: string): Promise<string> => {
    const login = await usableCopilot({ store, places, key, signal, rejected });
    handedOut.add(login.accessToken, login.refreshToken);
    ({ apiUrl } = login);
    return login.accessToken;
  };
  return {
    source: "the stored login",
    baseUrl: apiUrl,
    async headers(wire, signal, { isFollowUp, hasImages }) {
      last = await usable(signal);
      // One of its wires lies a step deeper than the others.
      place = wire === "anthropic" ? `${apiUrl}/v1` : apiUrl;
      return {
        authorization: `Bearer ${last}`,
        // Requests of an agent that goes on by itself are not counted as a person's.
        "x-initiator": isFollowUp === true ? "agent" : "user",
        ...(hasImages === true ? { "copilot-vision-request": "true" } : {}),
      };
    },
    address: () => place,
    renew: async (signal) => (await usable(signal, last)) !== last,
    secrets: handedOut.secrets,
    hear: handedOut.hear,
  };
}

/** The login Codex keeps: read again for each request, because Codex may have renewed it. */
export function adoptedSource(env: Environment): CredentialSource {
  const issuer = openaiIssuer(env);
  const handedOut = createHandedOut();
  let last: string | undefined;
  return {
    source: "Codex's login",
    baseUrl: issuer.apiBaseUrl,
    async headers() {
      const login = await usableCodexLogin(env);
      last = login.accessToken;
      handedOut.add(last);
      return chatgptHeaders(issuer, login);
    },
    async renew() {
      return (await usableCodexLogin(env)).accessToken !== last;
    },
    secrets: handedOut.secrets,
    hear: handedOut.hear,
  };
}

function chatgptHeaders(
  issuer: Issuer,
  login: {
    readonly accessToken: string;
    readonly accountId?: string | undefined;
    readonly isFedramp?: boolean | undefined;
  },
): Record<string, string> {
  return {
    authorization: `Bearer ${login.accessToken}`,
    ...(login.accountId === undefined ? {} : { "chatgpt-account-id": login.accountId }),
    ...(login.isFedramp === true ? { "x-openai-fedramp": "true" } : {}),
    originator: issuer.originator,
  };
}

/** A stored key goes only where it was stored for. */
export function usableKey(entry: ApiKeyCredential, { id, baseUrl }: Pick<ProviderConfig, "id" | "baseUrl">): string {
  const origin = URL.parse(baseUrl ?? "")?.origin;
  if (origin === entry.origin) return entry.key;
  throw new HeddleError(
    "auth.missing",
    `the key stored for ${id} is for ${entry.origin} and is not sent to ${origin ?? "another address"}; store one for it with: ${loginCommand(id, entry.profile)}`,
    { details: { provider: id, profile: entry.profile } },
  );
}

export function keySource({ auth }: Pick<ProviderConfig, "auth">, key: string): CredentialSource {
  return {
    source: "the stored key",
    headers: async (wire) => authHeader(wire, key, auth),
    renew: async () => false,
    secrets: () => [key],
    hear: (listener) => listener([key]),
  };
}
