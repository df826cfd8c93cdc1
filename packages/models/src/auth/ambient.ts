/** Credentials of the machine itself: the token of a program, of Google, or keys of AWS. None of it is stored. */
import { defined, HeddleError } from "@heddle/protocol";
import {
  hostedUrl,
  type BedrockAuth,
  type CommandAuth,
  type CredentialSource,
  type Environment,
  type TokenCommand,
  type VertexAuth,
} from "../providers/provider-auth.ts";
import type { ProviderConfig } from "../providers/providers.ts";
import { awsCredentials } from "./aws-credentials.ts";
import { signAws } from "./aws-signature.ts";
import { commandToken } from "./command-token.ts";
import { googleSecrets, googleToken, metadataToken, readGoogleCredentials } from "./google-credentials.ts";
import { tryThrice } from "./refresh.ts";
import { createTokenCache, type FreshToken } from "./token-cache.ts";
import { createHandedOut, tokenSource, type HandedOut } from "./token-source.ts";

/** Throws `auth.missing` where it is clear now that there is nothing to use. */
export async function ambientSource(
  config: ProviderConfig,
  auth: CommandAuth | VertexAuth | BedrockAuth,
  env: Environment,
): Promise<CredentialSource> {
  switch (auth.type) {
    case "command":
      return commandSource(config.id, auth, env);
    case "vertex":
      return vertexSource(config.id, auth, env);
    case "bedrock":
      return bedrockSource(config, auth, env);
  }
}

function commandSource(
  provider: string,
  auth: TokenCommand & Pick<CommandAuth, "header">,
  env: Environment,
): CredentialSource {
  return bearerSource("the token command", {
    fetchToken: (signal) => commandToken(auth, { provider, env, signal }),
    in: auth.header,
  });
}

async function vertexSource(provider: string, auth: VertexAuth, env: Environment): Promise<CredentialSource> {
  if (auth.command !== undefined) return commandSource(provider, { command: auth.command }, env);
  if (auth.metadata === true) {
    return bearerSource("the account of this machine", { fetchToken: (signal) => metadataToken(env, { signal }) });
  }
  const { file, ...first } = await readGoogleCredentials(auth, env);
  const quota = first.type === "authorized_user" ? first.quota_project_id : undefined;
  return bearerSource(file, {
    async fetchToken(signal, learn) {
      // Read again: the user may have logged in again.
      const credentials = await readGoogleCredentials(auth, env);
      learn(...googleSecrets(credentials));
      return googleToken(credentials, auth, { signal });
    },
    headers: quota === undefined ? {} : { "x-goog-user-project": quota },
  });
}

interface BearerOptions {
  readonly fetchToken: (signal: AbortSignal, learn: HandedOut["add"]) => Promise<FreshToken>;
  readonly headers?: Readonly<Record<string, string>>;
  /** A header that holds nothing but the token. */
  readonly in?: string | undefined;
}

function bearerSource(source: string, { fetchToken, headers, in: own }: BearerOptions): CredentialSource {
  const handedOut = createHandedOut();
  const cache = createTokenCache((signal) => tryThrice((limit) => fetchToken(limit, handedOut.add), { signal }));
  return tokenSource({
    source,
    handedOut,
    async login(signal, rejected) {
      return { accessToken: await (rejected === undefined ? cache.get(signal) : cache.replace(rejected, signal)) };
    },
    headers: ({ accessToken }) => ({
      ...(own === undefined ? { authorization: `Bearer ${accessToken}` } : { [own.toLowerCase()]: accessToken }),
      ...headers,
    }),
  });
}

async function bedrockSource(config: ProviderConfig, auth: BedrockAuth, env: Environment): Promise<CredentialSource> {
  const region = auth.region ?? regionOf(config, env);
  const { source } = await awsCredentials(auth, env);
  const handedOut = createHandedOut();
  return {
    source,
    async headers(_wire, _signal, { method, url, headers, body }) {
      const credentials = await awsCredentials(auth, env);
      handedOut.add(credentials.secretAccessKey, credentials.sessionToken ?? "");
      const signed = defined({ "content-type": headers["content-type"] });
      const now = new Date();
      return signAws({ method, url, headers: signed, body, region, service: "bedrock", credentials, now });
    },
    renew: async () => false,
    secrets: handedOut.secrets,
    onSecrets: handedOut.onSecrets,
  };
}

/** Needed even where another address is configured: the signature names a region. */
function regionOf(config: ProviderConfig, env: Environment): string {
  const [, region] = /^https:\/\/bedrock-runtime\.([\w-]+)\./.exec(hostedUrl(config, env) ?? "") ?? [];
  if (region !== undefined) return region;
  throw new HeddleError("internal", `provider ${config.id} has no region`);
}
