/**
 * Looks things up in the catalog. Three sources, newest first: what the provider itself listed last, the copy in the home,
 * the snapshot of the program. Every run uses it, so nothing is read before it is needed.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import type { ModelInfo } from "./catalog.ts";
import type { ProviderConfig } from "../providers/providers.ts";
import { listFile, listSubject } from "../registry/list-file.ts";
import { list, parseJson, record } from "../wire/untrusted.ts";
import { readRefreshed, readSnapshot, readText, REFRESHED_FILE } from "./files.ts";
import type { Catalog, CatalogModel } from "./rows.ts";
import { trustedCatalog } from "./trust.ts";

export type CatalogKind = "snapshot" | "refreshed";

export interface CatalogFacts {
  readonly model: CatalogModel;
  readonly kind: CatalogKind;
  readonly date: string;
}

/** What the catalog says of the models of one provider. */
export interface CatalogLookup {
  /** From the copy in the home alone. */
  refreshed(model: string): CatalogFacts | undefined;
  snapshot(model: string): CatalogFacts | undefined;
  /** Limits that the provider itself named when it was last asked for its list. */
  listed(model: string): OwnLimits | undefined;
}

export type OwnLimits = Pick<ModelInfo, "contextTokens" | "maxOutputTokens" | "readsImages">;

/** Catalogs in force, newest first. */
export function catalogsInForce(home: string): readonly (readonly [CatalogKind, Catalog])[] {
  const snapshot = readSnapshot();
  const refreshed = hasRefreshed(home) ? readRefreshed(home) : undefined;
  const isNewer = refreshed !== undefined && (snapshot === undefined || refreshed.date >= snapshot.date);
  return [
    ...(isNewer ? ([["refreshed", trustedCatalog(refreshed)]] as const) : []),
    ...(snapshot === undefined ? [] : ([["snapshot", snapshot]] as const)),
  ];
}

/**
 * A provider without configuration. One that this version does not know gets no key variable that the configuration gives
 * to another provider.
 */
export function catalogProvider(
  home: string,
  id: string,
  otherVariables: ReadonlySet<string> = new Set(),
): ProviderConfig | undefined {
  for (const [, { providers }] of catalogsInForce(home)) {
    const found = providers.find((provider) => provider.id === id);
    if (found === undefined) continue;
    const { name, wire, baseUrl, keys } = found;
    const isKnown = readSnapshot()?.providers.some((provider) => provider.id === id) ?? false;
    const envKey = isKnown ? keys : keys.filter((key) => !otherVariables.has(key));
    return { id, name, wire, baseUrl, envKey };
  }
  return undefined;
}

export interface LookupOptions {
  readonly home: string;
  readonly id: string;
  /** Prices and limits are for this address only. */
  readonly baseUrl: string;
  /** Which of several stored accounts. */
  readonly account: string | undefined;
}

export function openLookup({ home, id, baseUrl, account }: LookupOptions): CatalogLookup {
  const find = (kind: CatalogKind, catalog: Catalog | undefined) => {
    const isIts = catalog?.providers.some((row) => row.id === id && sameAddress(row.baseUrl, baseUrl)) ?? false;
    const rows = new Map((isIts ? (catalog?.modelsOf(id) ?? []) : []).map((row) => [row.id, row]));
    return (model: string): CatalogFacts | undefined => {
      const row = rows.get(model) ?? rows.get(undated(model));
      return row === undefined ? undefined : { model: row, kind, date: catalog?.date ?? "" };
    };
  };
  const refreshed = once(() => {
    if (!hasRefreshed(home)) return () => undefined;
    const catalog = catalogsInForce(home).find(([kind]) => kind === "refreshed")?.[1];
    return find("refreshed", catalog);
  });
  const snapshot = once(() => find("snapshot", readSnapshot()));
  const own = once(() => readOwnList(listFile(home, listSubject({ id, baseUrl, account }))));
  return {
    refreshed: (model) => refreshed()(model),
    snapshot: (model) => snapshot()(model),
    listed: (model) => own().get(model),
  };
}

function hasRefreshed(home: string): boolean {
  return existsSync(path.join(home, REFRESHED_FILE));
}

function sameAddress(one: string, other: string): boolean {
  return one.replace(/\/+$/, "") === other.replace(/\/+$/, "");
}

/** A dated name is the same model, where its own row is missing. */
function undated(model: string): string {
  return model.replace(/[-@](\d{8}|\d{4}-\d{2}-\d{2})$/, "");
}

function readOwnList(file: string): ReadonlyMap<string, OwnLimits> {
  const limits = new Map<string, OwnLimits>();
  for (const row of list(record(parseJson(readText(file) ?? ""))?.["models"])) {
    const { id, contextTokens, maxOutputTokens, readsImages } = record(row) ?? {};
    if (typeof id !== "string") continue;
    limits.set(id, {
      ...(typeof contextTokens === "number" ? { contextTokens } : {}),
      ...(typeof maxOutputTokens === "number" ? { maxOutputTokens } : {}),
      ...(typeof readsImages === "boolean" ? { readsImages } : {}),
    });
  }
  return limits;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
