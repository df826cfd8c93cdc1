/** Stored keys and logins as providers use them; one never takes the place of another. */
import { defined, HeddleError } from "@heddle/protocol";
import type { CredentialSource, Environment } from "../providers/provider-auth.ts";
import { authHeader, type ProviderConfig } from "../providers/providers.ts";
import { usableCodexLogin } from "./codex-auth.ts";
import { usableCopilot, type UsableCopilotOptions } from "./copilot.ts";
import type { ApiKeyCredential, OAuthCredential } from "./credential.ts";
import { openaiIssuer, type Issuer } from "./issuer.ts";
import { loginCommand, usableOAuth, type RefreshOptions } from "./refresh.ts";
import { tokenSource } from "./token-source.ts";

/** A ChatGPT login of Heddle's own store. */
export function oauthSource(options: Pick<RefreshOptions, "store" | "issuer" | "key">): CredentialSource {
  const { issuer } = options;
  return tokenSource({
    source: "the stored login",
    baseUrl: issuer.apiBaseUrl,
    login: (signal, rejected) => usableOAuth({ ...options, signal, rejected }),
    headers: (login) => chatgptHeaders(issuer, login),
  });
}

/** A login at GitHub, for Copilot. `apiUrl`: as it is stored now. */
export function copilotSource({
  apiUrl,
  ...options
}: Pick<UsableCopilotOptions, "store" | "endpoints" | "key"> & { readonly apiUrl: string }): CredentialSource {
  let address = apiUrl;
  return tokenSource({
    source: "the stored login",
    baseUrl: apiUrl,
    login: (signal, rejected) => usableCopilot({ ...options, signal, rejected }),
    secretsOf: ({ refreshToken }) => [refreshToken],
    headers(login, wire, { isFollowUp, hasImages }) {
      // One of its wires has a longer path than the others.
      address = wire === "anthropic" ? `${login.apiUrl}/v1` : login.apiUrl;
      return {
        authorization: `Bearer ${login.accessToken}`,
        // Requests of an agent that continues by itself do not count as the user's.
        "x-initiator": isFollowUp === true ? "agent" : "user",
        ...(hasImages === true ? { "copilot-vision-request": "true" } : {}),
      };
    },
    address: () => address,
  });
}

/** The login of Codex: read again for each request, because Codex may have renewed it. */
export function adoptedSource(env: Environment): CredentialSource {
  const issuer = openaiIssuer(env);
  return tokenSource({
    source: "Codex's login",
    baseUrl: issuer.apiBaseUrl,
    login: () => usableCodexLogin(env),
    headers: (login) => chatgptHeaders(issuer, login),
  });
}

function chatgptHeaders(
  issuer: Issuer,
  login: Pick<OAuthCredential, "accessToken" | "accountId" | "isFedramp">,
): Record<string, string> {
  return {
    authorization: `Bearer ${login.accessToken}`,
    ...defined({ "chatgpt-account-id": login.accountId }),
    ...(login.isFedramp === true ? { "x-openai-fedramp": "true" } : {}),
    originator: issuer.originator,
  };
}

/** A stored key is sent only to the address it was stored for. */
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
    onSecrets: (listener) => listener([key]),
  };
}
