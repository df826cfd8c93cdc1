/**
 * Which models a provider offers: its own list, else its last list, else what is known here. A list that is older than five
 * minutes is marked stale. Without a login a provider is not asked.
 */
import { defined, HeddleError, isHeddleError } from "@heddle/protocol";
import { z } from "zod";
import { pinnedFetch, type PinnedAnswer } from "../auth/pinned-fetch.ts";
import { knownModels, modelInfo } from "../catalog/catalog.ts";
import { listsModels, type Outgoing } from "../providers/provider-auth.ts";
import type { Provider, ProviderConfig } from "../providers/providers.ts";
import { count } from "../wire/untrusted.ts";
import { listSubject } from "./list-file.ts";
import { type CachedList, type ListedModel, type ModelCache } from "./model-cache.ts";
import type { Offer } from "./selector.ts";

export const CATALOG_TTL_MS = 300_000;
const ANSWER_MS = 4_000;

export interface ModelListing {
  readonly provider: string;
  readonly source: "live" | "cache" | "static";
  readonly isStale: boolean;
  readonly isLoggedIn: boolean;
  readonly models: readonly ListedModel[];
  /** Absent: the provider did not list it. */
  readonly listedAt?: string;
  /** Why the provider itself could not be reached. */
  readonly problem?: { readonly code: string; readonly message: string };
}

export interface CatalogQuestion {
  readonly config: ProviderConfig;
  /** undefined: not logged in. */
  readonly client: Provider | undefined;
  readonly owner: string;
  readonly cache: ModelCache;
  readonly isForced?: boolean | undefined;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export async function listModels(question: CatalogQuestion): Promise<ModelListing> {
  const { config, client, cache, now = Date.now } = question;
  const provider = config.id;
  const known = { provider, source: "static", models: staticModels(config) } as const;
  if (client === undefined) return { ...known, isStale: true, isLoggedIn: false };
  if (!listsModels(client)) return { ...known, isStale: false, isLoggedIn: true };
  const { account } = config;
  const subject = listSubject({ id: provider, baseUrl: client.baseUrl, account, owner: question.owner });
  const cached = await cache.read(subject);
  const age = cached === undefined ? Number.POSITIVE_INFINITY : now() - cached.fetchedAt;
  const isLoggedIn = true;
  if (cached !== undefined && question.isForced !== true && age >= 0 && age < CATALOG_TTL_MS) {
    return { provider, source: "cache", isStale: false, isLoggedIn, models: cached.models, ...listedAt(cached) };
  }
  try {
    const fresh = await askModels(client, cached, question.signal);
    const fetchedAt = now();
    await cache.write(subject, { ...fresh, fetchedAt });
    return { provider, source: "live", isStale: false, isLoggedIn, models: fresh.models, ...listedAt({ fetchedAt }) };
  } catch (error) {
    question.signal.throwIfAborted();
    if (!isHeddleError(error)) throw error;
    const problem = { code: error.code, message: client.redact(error.message) };
    if (cached === undefined) return { ...known, isStale: true, isLoggedIn, problem };
    const { models } = cached;
    return { provider, source: "cache", isStale: true, isLoggedIn, models, problem, ...listedAt(cached) };
  }
}

function listedAt({ fetchedAt }: Pick<CachedList, "fetchedAt">): { readonly listedAt: string } {
  return { listedAt: new Date(fetchedAt).toISOString() };
}

export function offerOf({ provider, source, isStale, models }: ModelListing): Offer {
  return { provider, isAuthoritative: source !== "static" && !isStale, models: models.map(({ id }) => id) };
}

/** A request without cost, which also shows whether a credential is accepted. */
export async function askModelList(client: Provider, signal: AbortSignal, etag?: string): Promise<PinnedAnswer> {
  const url = new URL(client.baseUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/models`;
  for (const [name, value] of Object.entries(client.query)) url.searchParams.set(name, value);
  if (client.id === "openai-codex") url.searchParams.set("client_version", "1.0.0");
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const outgoing: Outgoing = { method: "GET", url, headers: {}, body: "" };
  return pinnedFetch({
    url: url.href,
    origins: [url.origin],
    headers: {
      ...(client.wire === "anthropic" ? { "anthropic-version": "2023-06-01" } : {}),
      ...(await client.credential?.headers(client.wire, limit, outgoing)),
      ...client.headers(),
      ...defined({ "if-none-match": etag }),
    },
    timeoutMs: ANSWER_MS,
    signal,
  });
}

async function askModels(
  client: Provider,
  cached: CachedList | undefined,
  signal: AbortSignal,
): Promise<Pick<CachedList, "etag" | "models">> {
  const answer = await askModelList(client, signal, cached?.etag);
  if (answer.status === 304 && cached !== undefined) return cached;
  if (answer.status === 401 || answer.status === 403) {
    throw new HeddleError("auth.rejected", `${client.name} refuses the credential (status ${answer.status})`);
  }
  const models = answer.status === 200 ? readList(answer.json) : undefined;
  if (models === undefined) {
    throw new HeddleError("provider.malformed", `${client.name} does not list its models (status ${answer.status})`);
  }
  return { models, ...defined({ etag: answer.etag }) };
}

/** The names that vendors give to the length of a conversation, and to the length of an answer; the first counts. */
const CONTEXT = "context_length context_window max_context_length max_model_len max_input_tokens inputTokenLimit".split(
  " ",
);
const OUTPUT = "max_completion_tokens max_output_tokens outputTokenLimit max_tokens".split(" ");
const Row = z.looseObject({
  id: z.string().optional(),
  name: z.string().optional(),
  slug: z.string().optional(),
  display_name: z.string().nullish(),
  top_provider: z.object({ max_completion_tokens: z.unknown() }).nullish().catch(undefined),
  architecture: z
    .object({ input_modalities: z.array(z.string()).nullish() })
    .nullish()
    .catch(undefined),
});
const Lists = z.union([
  z.object({ data: z.array(Row) }),
  z.object({ models: z.array(Row) }),
  z.array(Row).transform((data) => ({ data })),
]);

/** OpenAI and Anthropic use `data`, Gemini `models` with names, ChatGPT `models` with slugs, Together a plain list. */
function readList(json: unknown): ListedModel[] | undefined {
  const list = Lists.safeParse(json);
  if (!list.success) return undefined;
  const isData = "data" in list.data;
  const rows = "data" in list.data ? list.data.data : list.data.models;
  const named = rows.map((row) => ({
    row,
    id: (isData ? row.id : (row.slug ?? row.name?.replace(/^models\//, ""))) ?? "",
  }));
  if (isData && named.some(({ id }) => id === "")) return undefined;
  return named.filter(({ id }) => id !== "" && id.length <= 256).map(({ id, row }) => listedModel(id, row));
}

function listedModel(id: string, row: z.infer<typeof Row>): ListedModel {
  const figures = (names: readonly string[]): readonly unknown[] => names.map((name) => row[name]);
  return defined({
    id,
    name: row.display_name?.slice(0, 256) || undefined,
    contextTokens: firstCount(figures(CONTEXT)),
    maxOutputTokens: firstCount([row.top_provider?.max_completion_tokens, ...figures(OUTPUT)]),
    readsImages: row.architecture?.input_modalities?.includes("image"),
  });
}

/** More than any model reads; a larger number is a mistake. */
const MAX_TOKENS = 1_000_000_000;

function firstCount(counts: readonly unknown[]): number | undefined {
  return counts.map(count).find((value) => value !== undefined && value > 0 && value <= MAX_TOKENS);
}

function staticModels({ vendor, family, isLoginOnly }: ProviderConfig): ListedModel[] {
  const maker = vendor ?? (isLoginOnly === true ? family : undefined);
  const isMade = (model: string): boolean => modelInfo({ wire: "openai-chat" }, model).family === maker;
  return maker === undefined ? [] : knownModels().flatMap((id) => (isMade(id) ? [{ id }] : []));
}
