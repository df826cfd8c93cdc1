/**
 * Which models a provider offers: what it says now, else what it said lately, else what is known here. Whatever is not from
 * the provider just now or within five minutes is marked stale. A provider not logged in at is not asked.
 */
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { z } from "zod";
import { pinnedFetch, type PinnedAnswer } from "../auth/pinned-fetch.ts";
import { knownModels, modelInfo } from "../catalog.ts";
import { listsModels, type Outgoing } from "../provider-auth.ts";
import type { Provider, ProviderConfig } from "../providers.ts";
import { listSubject } from "./list-file.ts";
import { type CachedList, type ListedModel, type ModelCache } from "./model-cache.ts";
import type { Offer } from "./selector.ts";

export const CATALOG_TTL_MS = 300_000;
const ANSWER_MS = 4_000;

export interface ModelListing {
  readonly provider: string;
  readonly source: "live" | "cache" | "static";
  /** Not what the provider says now. */
  readonly isStale: boolean;
  readonly isLoggedIn: boolean;
  readonly models: readonly ListedModel[];
  /** When the provider said so; absent when it did not. */
  readonly listedAt?: string;
  /** Why the provider itself could not be heard. */
  readonly problem?: { readonly code: string; readonly message: string };
}

export interface CatalogQuestion {
  readonly config: ProviderConfig;
  /** undefined: nobody is logged in. */
  readonly client: Provider | undefined;
  /** Tells lists of several people apart. */
  readonly owner: string;
  readonly cache: ModelCache;
  readonly isForced?: boolean | undefined;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export async function listModels(question: CatalogQuestion): Promise<ModelListing> {
  const { config, client, cache, now = Date.now } = question;
  const provider = config.id;
  if (client === undefined) {
    return { provider, source: "static", isStale: true, isLoggedIn: false, models: staticModels(config) };
  }
  if (!listsModels(client)) {
    return { provider, source: "static", isStale: false, isLoggedIn: true, models: staticModels(config) };
  }
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
    const models = cached?.models ?? staticModels(config);
    const source = cached === undefined ? "static" : "cache";
    return { provider, source, isStale: true, isLoggedIn, models, problem, ...listedAt(cached) };
  }
}

function listedAt(list: Pick<CachedList, "fetchedAt"> | undefined): { readonly listedAt?: string } {
  return list === undefined ? {} : { listedAt: new Date(list.fetchedAt).toISOString() };
}

export function offerOf({ provider, source, isStale, models }: ModelListing): Offer {
  return { provider, isAuthoritative: source !== "static" && !isStale, models: models.map(({ id }) => id) };
}

/** One request that costs nothing; also what tells whether a credential is taken. */
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
      ...(etag === undefined ? {} : { "if-none-match": etag }),
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
  return { models, ...(answer.etag === undefined ? {} : { etag: answer.etag }) };
}

/** A number of another kind says nothing; the rest of the list still does. */
const tokens = z.number().nullish().catch(undefined);
const Row = z.object({
  id: z.string().optional(),
  name: z.string().optional(),
  slug: z.string().optional(),
  display_name: z.string().nullish(),
  // How long a conversation may be, in the words of the several vendors.
  context_length: tokens,
  context_window: tokens,
  max_context_length: tokens,
  max_model_len: tokens,
  max_input_tokens: tokens,
  inputTokenLimit: tokens,
  // How much may be answered.
  max_completion_tokens: tokens,
  max_output_tokens: tokens,
  max_tokens: tokens,
  outputTokenLimit: tokens,
  top_provider: z.object({ max_completion_tokens: tokens }).nullish().catch(undefined),
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

/** OpenAI and Anthropic say `data`, Gemini `models` with names, ChatGPT `models` with slugs, Together a bare list. */
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
  const contextTokens = firstCount([
    row.context_length,
    row.context_window,
    row.max_context_length,
    row.max_model_len,
    row.max_input_tokens,
    row.inputTokenLimit,
  ]);
  const maxOutputTokens = firstCount([
    row.top_provider?.max_completion_tokens,
    row.max_completion_tokens,
    row.max_output_tokens,
    row.outputTokenLimit,
    row.max_tokens,
  ]);
  const modalities = row.architecture?.input_modalities ?? undefined;
  return {
    id,
    ...(row.display_name ? { name: row.display_name.slice(0, 256) } : {}),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(modalities === undefined ? {} : { readsImages: modalities.includes("image") }),
  };
}

/** More than any model reads; a larger number is a mistake. */
const MAX_TOKENS = 1_000_000_000;

function firstCount(counts: readonly (number | null | undefined)[]): number | undefined {
  return counts.find(
    (count): count is number =>
      typeof count === "number" && Number.isSafeInteger(count) && count > 0 && count <= MAX_TOKENS,
  );
}

function staticModels({ vendor, family, isLoginOnly }: ProviderConfig): ListedModel[] {
  const maker = vendor ?? (isLoginOnly === true ? family : undefined);
  const isMade = (model: string): boolean => modelInfo({ wire: "openai-chat" }, model).family === maker;
  return maker === undefined ? [] : knownModels().flatMap((id) => (isMade(id) ? [{ id }] : []));
}
