/**
 * What a downloaded catalog may change: models, limits and prices. For every provider that this version knows by name, this
 * version decides where requests and keys go; any other provider gets only a key variable with its own name that no other
 * provider uses. Checked when a catalog is downloaded and whenever the copy in the home is read, because any program may
 * have written that file.
 */
import { BUILT_IN_PROVIDERS } from "../providers/built-in-providers.ts";
import { AWS_VARIABLES, THIS_MACHINE } from "../providers/provider-auth.ts";
import { readSnapshot } from "./files.ts";
import { isKeyVariable, type Catalog, type CatalogModel, type CatalogProvider } from "./rows.ts";

export interface LeftOut {
  readonly provider: string;
  readonly why: string;
}

type Known = Pick<CatalogProvider, "name" | "wire" | "baseUrl" | "keys">;

export function trustedProviders<Row extends CatalogProvider>(
  rows: readonly Row[],
): { readonly providers: readonly Row[]; readonly leftOut: readonly LeftOut[] } {
  const knownProviders = providersOfThisVersion();
  const variables = knownVariables();
  const providers: Row[] = [];
  const leftOut: LeftOut[] = [];
  for (const row of rows) {
    const leave = (why: string): unknown => leftOut.push({ provider: row.id, why });
    if (knownProviders.has(row.id)) {
      const known = knownProviders.get(row.id);
      if (known === undefined) leave("this version has no fixed address for it");
      else providers.push({ ...row, ...known });
      const [theirs, ours] = [hostOf(row.baseUrl), hostOf(known?.baseUrl ?? row.baseUrl)];
      if (theirs !== ours) leave(`only its address ${theirs}; requests still go to ${ours}`);
      continue;
    }
    const why = refusal(row, "home") ?? strangeKey(row, variables);
    if (why === undefined) providers.push(row);
    else leave(why);
  }
  return { providers, leftOut };
}

/** The copy in the home as it may be used. */
export function trustedCatalog(catalog: Catalog): Catalog {
  const { providers } = trustedProviders(catalog.providers);
  const ids = new Set(providers.map(({ id }) => id));
  return {
    ...catalog,
    providers,
    modelsOf: (id) => (ids.has(id) ? catalog.modelsOf(id).filter(isPlausible) : []),
  };
}

/** undefined: known, without a fixed address. */
function providersOfThisVersion(): ReadonlyMap<string, Known | undefined> {
  const known = new Map<string, Known | undefined>();
  for (const { id, name, wire, baseUrl, keys } of readSnapshot()?.providers ?? []) {
    known.set(id, { name, wire, baseUrl, keys });
  }
  for (const { id, name = id, wire, baseUrl, envKey = [] } of BUILT_IN_PROVIDERS) {
    const isFixed = wire !== undefined && wire !== "scripted" && baseUrl !== undefined;
    known.set(id, isFixed ? { name, wire, baseUrl, keys: [envKey].flat() } : undefined);
  }
  return known;
}

function knownVariables(): ReadonlySet<string> {
  return new Set([
    ...Object.values(AWS_VARIABLES),
    ...BUILT_IN_PROVIDERS.flatMap(({ envKey = [] }) => envKey),
    ...(readSnapshot()?.providers ?? []).flatMap(({ keys }) => keys),
  ]);
}

function hostOf(baseUrl: string): string {
  return URL.parse(baseUrl)?.host ?? "";
}

function strangeKey({ id, keys }: CatalogProvider, known: ReadonlySet<string>): string | undefined {
  const own = id.toUpperCase().replace(/[^A-Z0-9]/g, "_");
  const isOwn = (key: string): boolean =>
    key.startsWith(own) && /^_(?:API_)?(?:KEY|TOKEN|PAT)$/.test(key.slice(own.length)) && !known.has(key);
  const strange = keys.find((key) => !isOwn(key));
  return strange === undefined ? undefined : `the key variable ${strange} is not its own`;
}

const PROVIDER_ID = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const MAX_URL = 2000;

/** What is wrong with a row. Only a file of this machine may name a server of this machine. */
export function refusal({ id, baseUrl, keys }: CatalogProvider, from: "elsewhere" | "home"): string | undefined {
  if (!PROVIDER_ID.test(id)) return "its name cannot be used";
  if (baseUrl.includes("${")) return "its address depends on more than a key";
  const url = baseUrl.length > MAX_URL ? null : URL.parse(baseUrl);
  const isPlain = url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  const isHere = from === "home" && isPlain && url.protocol === "http:" && THIS_MACHINE.includes(url.hostname);
  if (!isPlain || (url.protocol !== "https:" && !isHere)) return "its address is not plain https";
  if (!isHere && !/\.[a-z][a-z0-9-]*$/.test(url.hostname)) return "its address is not a public host name";
  return keys.length > 0 && keys.every(isKeyVariable) ? undefined : "it needs more than a key";
}

const MIN_WINDOW = 1024;
const MIN_OUTPUT = 256;

/** A model with smaller limits cannot work; such a row would only prevent its use. */
export function isPlausible({ contextTokens, maxInputTokens, maxOutputTokens }: CatalogModel): boolean {
  const window = contextTokens ?? Number.MAX_SAFE_INTEGER;
  const output = maxOutputTokens ?? MIN_OUTPUT;
  return window >= MIN_WINDOW && (maxInputTokens ?? window) >= MIN_WINDOW && output >= MIN_OUTPUT && output <= window;
}
