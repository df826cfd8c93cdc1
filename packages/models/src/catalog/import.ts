/**
 * Turns models.dev's `api.json` into rows. Nothing in it is trusted: a provider is accepted only with a wire that Heddle
 * supports, an https address by name, and nothing but key variables; a model only with plausible numbers. What is left out
 * is named with its reason.
 */
import { defined, HeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { Price, Rates } from "./price.ts";
import type { CatalogModel, CatalogProvider, FilledProvider } from "./rows.ts";
import { ADDRESSES, QUIRKS, WIRE_SUFFIXES } from "./sdk-addresses.ts";
import { isPlausible, refusal, type LeftOut } from "./trust.ts";

/** With fewer it is not the catalog. */
const MIN_PROVIDERS = 10;
const MIN_MODELS = 100;
const MAX_PROVIDERS = 2000;
const MAX_MODELS = 100_000;

export interface Imported {
  readonly providers: readonly FilledProvider[];
  readonly leftOut: readonly LeftOut[];
  /** Models whose rows cannot be used. */
  readonly models: { readonly taken: number; readonly leftOut: number };
}

const rate = z.number().min(0).max(100_000);
const Rate = z.object({
  input: rate,
  output: rate,
  reasoning: rate.optional(),
  cache_read: rate.optional(),
  cache_write: rate.optional(),
});
const address = z.string().max(2000);
const count = z.int().min(0).max(1_000_000_000);
const Tier = z.object({ ...Rate.shape, tier: z.object({ type: z.literal("context").optional(), size: count }) });
const Model = z.object({
  limit: z.object({ context: count, input: count.optional(), output: count.optional() }),
  cost: z.object({ ...Rate.shape, tiers: z.array(Tier).max(20).optional() }).optional(),
  modalities: z.object({ input: z.array(z.string()).max(20), output: z.array(z.string()).max(20) }),
  reasoning_options: z
    .array(z.object({ type: z.string(), values: z.array(z.string().max(20).nullable()).max(20).optional() }))
    .max(20)
    .optional(),
  tool_call: z.boolean().optional(),
  release_date: z
    .string()
    .regex(/^\d{4}-\d{2}(-\d{2})?$/)
    .optional(),
  status: z.string().max(20).optional(),
  provider: z.object({ npm: z.string().optional(), api: address.optional(), shape: z.string().optional() }).optional(),
});
const Provider = z.object({
  name: z.string().min(1).max(100),
  npm: z.string(),
  api: address.optional(),
  env: z.array(z.string()).min(1).max(10),
  models: z.record(z.string(), z.unknown()),
});

const MODEL_ID = /^[\u0021-\u007e]{1,200}$/;

export function importCatalog(json: unknown): Imported {
  const found = z.record(z.string(), z.unknown()).safeParse(json);
  if (!found.success) throw notTheCatalog("it is not a table of providers");
  const entries = Object.entries(found.data);
  if (entries.length > MAX_PROVIDERS) throw notTheCatalog(`it names ${entries.length} providers`);
  const taken = new Map<string, FilledProvider>();
  const leftOut: LeftOut[] = [];
  let unusable = 0;
  for (const [key, value] of entries.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const shown = key.slice(0, 64);
    const parsed = Provider.safeParse(value);
    if (!parsed.success) {
      leftOut.push({ provider: shown, why: "its row is not understood" });
      continue;
    }
    const groups = groupModels(key, parsed.data);
    unusable += groups.unusable;
    for (const group of groups.providers) {
      const why = refusal(group, "elsewhere");
      if (why !== undefined) leftOut.push({ provider: shown, why });
      else if (taken.has(group.id)) leftOut.push({ provider: shown, why: `its name ${group.id} is taken` });
      else taken.set(group.id, group);
    }
    if (groups.providers.length === 0) leftOut.push({ provider: shown, why: groups.why });
  }
  const providers = [...taken.values()];
  const models = providers.reduce((sum, provider) => sum + provider.models.length, 0);
  if (providers.length < MIN_PROVIDERS || models < MIN_MODELS || models > MAX_MODELS) {
    throw notTheCatalog(`it has ${providers.length} usable providers with ${models} models`);
  }
  return { providers, leftOut: unique(leftOut), models: { taken: models, leftOut: unusable } };
}

interface Groups {
  readonly providers: readonly FilledProvider[];
  readonly unusable: number;
  /** Where there is no provider. */
  readonly why: string;
}

/** A gateway may serve some of its models over other wires than the rest; each wire becomes a provider of its own. */
function groupModels(key: string, provider: z.infer<typeof Provider>): Groups {
  const quirk = Object.hasOwn(QUIRKS, key) ? QUIRKS[key] : undefined;
  if (quirk?.leaveOut !== undefined) return { providers: [], unusable: 0, why: quirk.leaveOut };
  const main = addressOf(provider);
  const id = quirk?.id ?? key;
  const groups = new Map<string, { head: CatalogProvider; models: CatalogModel[] }>();
  let unusable = 0;
  for (const [name, value] of Object.entries(provider.models)) {
    const parsed = Model.safeParse(value);
    const isWriter = parsed.data?.modalities.output.includes("text") ?? true;
    const model = parsed.success ? modelOf(name, parsed.data) : undefined;
    if (!isWriter) continue;
    if (!parsed.success || model === undefined || !MODEL_ID.test(name) || !isPlausible(model)) {
      unusable += 1;
      continue;
    }
    const { npm = provider.npm, api = provider.api, shape } = parsed.data.provider ?? {};
    const address = addressOf({ npm, api, shape });
    if (address === undefined) continue;
    const isMain = address.wire === main?.wire && address.baseUrl === main.baseUrl;
    const groupId = isMain ? id : `${id}-${WIRE_SUFFIXES[address.wire]}`;
    const head = { id: groupId, name: provider.name, ...address, keys: provider.env };
    const group = groups.get(groupId) ?? { head, models: [] };
    groups.set(groupId, group);
    if (group.head.baseUrl === address.baseUrl) group.models.push(model);
  }
  return {
    providers: [...groups.values()].map(({ head, models }) => ({ ...head, models })),
    unusable,
    why: main === undefined ? `no supported wire: ${provider.npm.slice(0, 60)}` : "it has no model that writes text",
  };
}

type Address = Pick<CatalogProvider, "wire" | "baseUrl">;

type Access = NonNullable<z.infer<typeof Model>["provider"]>;

function addressOf({ npm = "", api, shape }: Access): Address | undefined {
  const known = Object.hasOwn(ADDRESSES, npm) ? ADDRESSES[npm] : undefined;
  const url = api ?? known?.baseUrl;
  if (known === undefined || url === undefined) return undefined;
  const shaped = shape === "responses" ? "openai-responses" : shape === "completions" ? "openai-chat" : undefined;
  return { wire: shaped ?? known.wire, baseUrl: url.replace(/\/+$/, "").replace(/\/chat\/completions$/, "") };
}

const MODALITIES = ["text", "image", "audio", "video", "pdf"] as const;

function modelOf(id: string, row: z.infer<typeof Model>): CatalogModel {
  const { context, input, output } = row.limit;
  const efforts = row.reasoning_options
    ?.find(({ type }) => type === "effort")
    ?.values?.filter((value) => value !== null);
  return defined({
    id,
    contextTokens: context > 0 ? context : undefined,
    maxInputTokens: input !== undefined && input > 0 && input < context ? input : undefined,
    maxOutputTokens: output !== undefined && output > 0 ? output : undefined,
    price: row.cost === undefined ? undefined : priceOf(row.cost),
    input: MODALITIES.filter((modality) => row.modalities.input.includes(modality)),
    efforts: efforts?.length === 0 ? undefined : efforts,
    hasTools: row.tool_call !== false,
    isDeprecated: row.status === "deprecated" ? true : undefined,
    released: row.release_date,
  });
}

/** Zero for everything also stands for subscriptions and unknown prices, so it is not a price. */
function priceOf({ tiers = [], ...rates }: NonNullable<z.infer<typeof Model>["cost"]>): Price | undefined {
  if (rates.input === 0 && rates.output === 0) return undefined;
  const steps = tiers
    .filter(({ tier }) => tier.size > 0)
    .map((tier) => ({ overTokens: tier.tier.size, ...ratesOf(tier) }))
    .toSorted((a, b) => a.overTokens - b.overTokens);
  return { ...ratesOf(rates), ...(steps.length === 0 ? {} : { tiers: steps }) };
}

function ratesOf({ input, output, cache_read, cache_write, reasoning }: z.infer<typeof Rate>): Rates {
  const own = reasoning === output ? undefined : reasoning;
  return defined({ input, output, cached: cache_read, cacheWrite: cache_write, reasoning: own });
}

function unique(leftOut: readonly LeftOut[]): LeftOut[] {
  return [...new Map(leftOut.map((entry) => [`${entry.provider}\n${entry.why}`, entry])).values()];
}

function notTheCatalog(why: string): HeddleError {
  return new HeddleError("provider.malformed", `this is not the catalog of models.dev: ${why}`);
}
