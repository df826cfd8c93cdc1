/**
 * What a catalog from elsewhere may say. It brings models, limits and prices. Where a request and its key go is this version's
 * word for every provider that it knows by name; any other provider gets only a key variable that bears its own name and that
 * nobody else uses. Asked when a catalog is fetched and whenever the copy in the home is read, because anybody may have
 * written that file.
 */
import { BUILT_IN_PROVIDERS } from "../built-in-providers.ts";
import { AWS_VARIABLES } from "../provider-auth.ts";
import { readSnapshot } from "./files.ts";
import { isKeyVariable, type Catalog, type CatalogModel, type CatalogProvider } from "./rows.ts";

export interface LeftOut {
  readonly provider: string;
  readonly why: string;
}

export interface Trusted<Row> {
  readonly providers: readonly Row[];
  readonly leftOut: readonly LeftOut[];
}

type Place = Pick<CatalogProvider, "name" | "wire" | "baseUrl" | "keys">;

export function trustedProviders<Row extends CatalogProvider>(rows: readonly Row[]): Trusted<Row> {
  const places = knownPlaces();
  const variables = knownVariables();
  const providers: Row[] = [];
  const leftOut: LeftOut[] = [];
  for (const row of rows) {
    const leave = (why: string): unknown => leftOut.push({ provider: row.id, why });
    if (places.has(row.id)) {
      const place = places.get(row.id);
      if (place === undefined) leave("this version has no fixed address for it");
      else providers.push({ ...row, ...place });
      const [theirs, ours] = [hostOf(row.baseUrl), hostOf(place?.baseUrl ?? row.baseUrl)];
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

/** undefined: known, with no address of its own. */
function knownPlaces(): ReadonlyMap<string, Place | undefined> {
  const places = new Map<string, Place | undefined>();
  for (const { id, name, wire, baseUrl, keys } of readSnapshot()?.providers ?? []) {
    places.set(id, { name, wire, baseUrl, keys });
  }
  for (const { id, name = id, wire, baseUrl, envKey = [] } of BUILT_IN_PROVIDERS) {
    const isPlace = wire !== undefined && wire !== "scripted" && baseUrl !== undefined;
    places.set(id, isPlace ? { name, wire, baseUrl, keys: [envKey].flat() } : undefined);
  }
  return places;
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

const HERE = ["127.0.0.1", "localhost", "[::1]"];

/** What is wrong with a row, whoever's it is. Only a file of this machine may name a server of this machine. */
export function refusal({ id, baseUrl, keys }: CatalogProvider, from: "elsewhere" | "home"): string | undefined {
  if (!PROVIDER_ID.test(id)) return "its name cannot be used";
  if (baseUrl.includes("${")) return "its address depends on more than a key";
  const url = baseUrl.length > MAX_URL ? null : URL.parse(baseUrl);
  const isPlain = url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  const isHere = from === "home" && isPlain && url.protocol === "http:" && HERE.includes(url.hostname);
  if (!isPlain || (url.protocol !== "https:" && !isHere)) return "its address is not plain https";
  if (!isHere && !/\.[a-z][a-z0-9-]*$/.test(url.hostname)) return "its address is not a public host name";
  return keys.length > 0 && keys.every(isKeyVariable) ? undefined : "it needs more than a key";
}

const MIN_WINDOW = 1024;
const MIN_OUTPUT = 256;

/** A model within smaller limits cannot do any work; such a row would only keep a model from being used. */
export function isPlausible({ contextTokens, maxInputTokens, maxOutputTokens }: CatalogModel): boolean {
  const window = contextTokens ?? Number.MAX_SAFE_INTEGER;
  const output = maxOutputTokens ?? MIN_OUTPUT;
  return window >= MIN_WINDOW && (maxInputTokens ?? window) >= MIN_WINDOW && output >= MIN_OUTPUT && output <= window;
}
