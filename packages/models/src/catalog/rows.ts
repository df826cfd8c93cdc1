/**
 * The catalog of models.dev as Heddle keeps it: one text, whose first line names the providers and says where the line with
 * the models of each is, so that one provider is found without reading the others.
 */
import { defined } from "@heddle/protocol";
import type { Price, PriceTier, Rates } from "./price.ts";
import type { WireName } from "../providers/providers.ts";
import { list, parseJson, record, text, type Fields } from "../wire/untrusted.ts";

export type Modality = "text" | "image" | "audio" | "video" | "pdf";

export interface CatalogModel {
  readonly id: string;
  readonly contextTokens?: number;
  /** Where a prompt may be no longer than this, although the window is larger. */
  readonly maxInputTokens?: number;
  readonly maxOutputTokens?: number;
  readonly price?: Price;
  readonly input: readonly Modality[];
  readonly efforts?: readonly string[];
  readonly hasTools: boolean;
  readonly isDeprecated?: boolean;
  /** A day or a month. */
  readonly released?: string;
}

export interface CatalogProvider {
  readonly id: string;
  readonly name: string;
  readonly wire: Exclude<WireName, "scripted">;
  readonly baseUrl: string;
  /** Variables that may hold the key; the first that is set counts. */
  readonly keys: readonly string[];
}

export interface CatalogHead {
  readonly source: string;
  readonly licence: string;
  /** Of the data: the day of the commit, or the moment it was fetched. */
  readonly date: string;
  readonly commit?: string;
}

export interface FilledProvider extends CatalogProvider {
  readonly models: readonly CatalogModel[];
}

export interface Catalog extends CatalogHead {
  readonly providers: readonly CatalogProvider[];
  /** In the order of the file; none for a provider that is not in it. */
  modelsOf(provider: string): readonly CatalogModel[];
}

/** Variables of any other form hold no key: a region, a resource, or something that must not be sent. */
export function isKeyVariable(name: string): boolean {
  return /^[A-Z0-9_]{2,60}_(?:KEY|TOKEN|PAT)$/.test(name);
}

const VERSION = 1;
/** By their first letters. */
const MODALITIES: Readonly<Record<string, Modality>> = { t: "text", i: "image", a: "audio", v: "video", p: "pdf" };

export function catalogText(head: CatalogHead, providers: readonly FilledProvider[]): string {
  const lines: string[] = [];
  let at = 0;
  const rows = providers.map(({ models, ...provider }) => {
    const line = `${JSON.stringify(models.map(modelRow))}\n`;
    const row = { ...provider, at, length: line.length - 1 };
    lines.push(line);
    at += line.length;
    return row;
  });
  return `${JSON.stringify({ v: VERSION, ...head, providers: rows })}\n${lines.join("")}`;
}

/** undefined for a text that is damaged, cut, or of another version. */
export function parseCatalog(whole: string): Catalog | undefined {
  const [first = ""] = whole.split("\n", 1);
  return openCatalog(first, { length: whole.length, read: () => whole });
}

/** By its first line; the rest is read when models are asked for. `length` is that of the whole, or more. */
export function openCatalog(first: string, whole: { length: number; read(): string | undefined }): Catalog | undefined {
  const head = record(parseJson(first)) ?? {};
  if (head["v"] !== VERSION || !Array.isArray(head["providers"])) return undefined;
  const { source, licence, date, commit } = head;
  if (typeof source !== "string" || typeof licence !== "string" || typeof date !== "string") return undefined;
  const lines = new Map<string, readonly [at: number, length: number]>();
  const providers: CatalogProvider[] = [];
  for (const value of head["providers"]) {
    const row = record(value) ?? {};
    const provider = providerOf(row);
    const { at, length } = row;
    if (
      provider === undefined ||
      typeof at !== "number" ||
      typeof length !== "number" ||
      first.length + 1 + at + length > whole.length
    )
      return undefined;
    lines.set(provider.id, [first.length + 1 + at, length]);
    providers.push(provider);
  }
  return {
    source,
    licence,
    date,
    ...defined({ commit: text(commit) }),
    providers,
    modelsOf(provider) {
      const [at, length] = lines.get(provider) ?? [0, 0];
      const rows = length === 0 ? [] : parseJson(whole.read()?.slice(at, at + length) ?? "");
      return list(rows).flatMap((row) => modelOf(record(row) ?? {}) ?? []);
    },
  };
}

const WIRE_NAMES = ["openai-responses", "openai-chat", "anthropic", "gemini"] as const;

function providerOf(row: Fields): CatalogProvider | undefined {
  const { id, name, baseUrl, keys } = row;
  const wire = WIRE_NAMES.find((known) => known === row["wire"]);
  if (typeof id !== "string" || typeof name !== "string" || typeof baseUrl !== "string") return undefined;
  if (wire === undefined || !isStrings(keys)) return undefined;
  return { id, name, wire, baseUrl, keys };
}

// The letters of a row: i id, c window, n longest prompt, o output, p rates, t tiers, m what it reads, e efforts, x without
// tools, g deprecated, d released. Rates are input, output, cache read, cache write, reasoning; null is not published.

function modelRow(model: CatalogModel): Record<string, unknown> {
  const { price } = model;
  return {
    i: model.id,
    c: model.contextTokens,
    n: model.maxInputTokens,
    o: model.maxOutputTokens,
    p: price === undefined ? undefined : ratesRow(price),
    t: price?.tiers?.map((tier) => [tier.overTokens, ...ratesRow(tier)]),
    m: model.input.map((modality) => modality.charAt(0)).join(""),
    e: model.efforts,
    x: model.hasTools ? undefined : 1,
    g: model.isDeprecated === true ? 1 : undefined,
    d: model.released,
  };
}

function ratesRow({ input, output, cached, cacheWrite, reasoning }: Rates): (number | null)[] {
  const row = [input, output, cached ?? null, cacheWrite ?? null, reasoning ?? null];
  return row.slice(0, row.findLastIndex((rate) => rate !== null) + 1);
}

function modelOf({ i, c, n, o, p, t, m, e, x, g, d }: Fields): CatalogModel | undefined {
  if (typeof i !== "string") return undefined;
  return defined({
    id: i,
    contextTokens: typeof c === "number" ? c : undefined,
    maxInputTokens: typeof n === "number" ? n : undefined,
    maxOutputTokens: typeof o === "number" ? o : undefined,
    price: priceOf(p, t),
    input: (text(m) ?? "").split("").flatMap((letter) => MODALITIES[letter] ?? []),
    efforts: isStrings(e) ? e : undefined,
    hasTools: x !== 1,
    isDeprecated: g === 1 ? true : undefined,
    released: text(d),
  });
}

function priceOf(row: unknown, tierRows: unknown): Price | undefined {
  const rates = ratesOf(row);
  if (rates === undefined || !Array.isArray(tierRows)) return rates;
  const tiers = tierRows.flatMap((tier): readonly PriceTier[] => {
    const [overTokens, ...rest]: unknown[] = Array.isArray(tier) ? tier : [];
    const own = ratesOf(rest);
    return typeof overTokens === "number" && overTokens > 0 && own !== undefined ? [{ overTokens, ...own }] : [];
  });
  return { ...rates, tiers };
}

function ratesOf(row: unknown): Rates | undefined {
  const [input, output, cached, cacheWrite, reasoning]: unknown[] = Array.isArray(row) ? row : [];
  if (!isRate(input) || !isRate(output)) return undefined;
  const known = (rate: unknown): number | undefined => (isRate(rate) ? rate : undefined);
  return defined({ input, output, cached: known(cached), cacheWrite: known(cacheWrite), reasoning: known(reasoning) });
}

/** One below nothing would lower what a run seems to cost. */
function isRate(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}
