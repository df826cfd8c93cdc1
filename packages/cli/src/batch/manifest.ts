/** What a run was started with, as it is kept beside its result: everything that was chosen, and of secrets only digests. */
import type { ProviderConfig } from "@heddle/models";
import type { InputPart, TurnSettings } from "@heddle/protocol";
import { sha256 } from "./report.ts";

export interface ManifestFacts {
  readonly heddleVersion: string;
  readonly runId: string;
  readonly workspace: string;
  readonly home: string;
  readonly settings: TurnSettings;
  readonly providers: readonly ProviderConfig[];
  readonly env: NodeJS.ProcessEnv;
  readonly input: readonly InputPart[];
  readonly retries: number;
  readonly idleTimeoutMs: number | undefined;
  readonly manifest: unknown;
}

export function manifestOf(facts: ManifestFacts): object {
  const { settings, providers, env } = facts;
  return {
    type: "heddle.run.manifest",
    version: 1,
    heddle_version: facts.heddleVersion,
    run_id: facts.runId,
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    workspace: facts.workspace,
    home: facts.home,
    settings,
    retries: facts.retries,
    idle_timeout_ms: facts.idleTimeoutMs ?? null,
    providers: providers.map((provider) => providerSnapshot(provider, env)),
    input: facts.input.map((part) =>
      part.type === "text"
        ? { type: "text", bytes: Buffer.byteLength(part.text), sha256: sha256(part.text) }
        : { type: "image", media_type: part.mediaType, sha256: sha256(part.base64) },
    ),
    manifest: facts.manifest ?? null,
  };
}

function providerSnapshot(provider: ProviderConfig, env: NodeJS.ProcessEnv): object {
  const { id, name, wire, baseUrl, envKey, key, headers, envHeaders, query } = provider;
  const variables = [...[envKey ?? []].flat(), ...Object.values(envHeaders ?? {})];
  return {
    id,
    name: name ?? null,
    wire: wire ?? null,
    base_url: baseUrl === undefined ? null : withoutSecrets(baseUrl),
    key_sha256: key === undefined ? null : digest(key),
    // Which variables are read, and what was in them, without saying it.
    env_sha256: Object.fromEntries(variables.map((variable) => [variable, digestOrNull(env[variable])])),
    headers_sha256: digests(headers),
    query_sha256: digests(query),
    max_attempts: provider.maxAttempts ?? null,
    request_attempts: provider.requestAttempts ?? null,
    idle_timeout_ms: provider.idleTimeoutMs ?? null,
  };
}

function digests(values: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, digest(value)]));
}

function digestOrNull(value: string | undefined): string | null {
  return value === undefined ? null : digest(value);
}

/** Enough to tell two apart, too little to find one. */
function digest(value: string): string {
  return sha256(value).slice(0, 16);
}

/** An address may carry a name and a password, or a key as its query. */
function withoutSecrets(address: string): string {
  const url = URL.parse(address);
  return url === null ? digest(address) : `${url.origin}${url.pathname}`;
}
