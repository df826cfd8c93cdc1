/**
 * Renews the catalog from the user's own network into the home. What comes is bounded, checked and written as a whole; when
 * anything is wrong with it, what was there stays. A key goes nowhere new by it: `trust.ts` says what it may change.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { HeddleError, hostFaultOr } from "@heddle/protocol";
import { pinnedFetch } from "../auth/pinned-fetch.ts";
import { REFRESHED_FILE } from "./files.ts";
import { importCatalog } from "./import.ts";
import { catalogsInForce, type CatalogKind } from "./lookup.ts";
import { catalogText, parseCatalog, type Catalog } from "./rows.ts";
import { trustedProviders, type LeftOut } from "./trust.ts";

const MODELS_URL = "https://models.dev/api.json";
export const LICENCE = "MIT, Copyright (c) 2025 models.dev";
/** Some six times of what it is today. */
const MAX_BYTES = 24 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

export interface RefreshOptions {
  readonly home: string;
  /** https, or http on this machine. */
  readonly url?: string | undefined;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
  readonly now?: () => Date;
}

export interface CatalogState {
  readonly kind: CatalogKind;
  readonly date: string;
}

export interface RefreshReport {
  readonly url: string;
  readonly file: string;
  readonly date: string;
  readonly before: CatalogState | undefined;
  readonly providers: number;
  readonly models: number;
  readonly addedProviders: readonly string[];
  readonly removedProviders: readonly string[];
  /** Where requests and keys go: never a change that passes unseen. */
  readonly changedAddresses: readonly { readonly provider: string; readonly from: string; readonly to: string }[];
  readonly addedModels: number;
  readonly removedModels: number;
  readonly changedModels: number;
  readonly unusableModels: number;
  readonly leftOut: readonly LeftOut[];
}

export async function refreshCatalog(options: RefreshOptions): Promise<RefreshReport> {
  const url = checkUrl(options.url ?? MODELS_URL);
  const answer = await pinnedFetch({
    url: url.href,
    origins: [url.origin],
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    maxBytes: options.maxBytes ?? MAX_BYTES,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const place = `${url.origin}${url.pathname}`;
  if (answer.status !== 200) {
    throw new HeddleError(
      "provider.rejected",
      `${place} answers with status ${answer.status}; the catalog stays as it was`,
    );
  }
  if (answer.json === undefined) {
    throw new HeddleError("provider.malformed", `${place} does not answer with JSON; the catalog stays as it was`);
  }
  const imported = importCatalog(answer.json);
  const { providers, leftOut } = trustedProviders(imported.providers);
  const date = (options.now?.() ?? new Date()).toISOString();
  const text = catalogText({ source: place, licence: LICENCE, date }, providers);
  const fresh = parseCatalog(text);
  if (fresh === undefined) throw new HeddleError("internal", "the new catalog cannot be read back");
  const [newest] = catalogsInForce(options.home);
  const file = path.join(options.home, REFRESHED_FILE);
  await replaceFile(file, text);
  return {
    url: place,
    file,
    date,
    before: newest === undefined ? undefined : { kind: newest[0], date: newest[1].date },
    providers: providers.length,
    models: providers.reduce((sum, { models }) => sum + models.length, 0),
    ...changes(newest?.[1], fresh),
    unusableModels: imported.models.leftOut,
    leftOut: [...imported.leftOut, ...leftOut],
  };
}

/** The snapshot of the program counts again. False: there was no copy. */
export async function resetCatalog(home: string): Promise<boolean> {
  try {
    await rm(path.join(home, REFRESHED_FILE));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw homeFault("remove", path.join(home, REFRESHED_FILE), error);
  }
}

function checkUrl(text: string): URL {
  const url = URL.parse(text);
  const isHere = url?.hostname === "127.0.0.1" || url?.hostname === "localhost" || url?.hostname === "[::1]";
  const isFine = url?.protocol === "https:" || (url?.protocol === "http:" && isHere);
  if (url === null || !isFine || url.username !== "" || url.password !== "") {
    throw new HeddleError("config.invalid", "models_url: must be an https address without credentials");
  }
  return url;
}

type Changes = Pick<
  RefreshReport,
  "addedProviders" | "removedProviders" | "changedAddresses" | "addedModels" | "removedModels" | "changedModels"
>;

function changes(before: Catalog | undefined, now: Catalog): Changes {
  const old = new Map((before?.providers ?? []).map((provider) => [provider.id, provider]));
  const fresh = new Map(now.providers.map((provider) => [provider.id, provider]));
  const counts = { addedModels: 0, removedModels: 0, changedModels: 0 };
  for (const id of new Set([...old.keys(), ...fresh.keys()])) {
    const had = new Map((before?.modelsOf(id) ?? []).map((model) => [model.id, JSON.stringify(model)]));
    const has = new Map(now.modelsOf(id).map((model) => [model.id, JSON.stringify(model)]));
    for (const [model, row] of has) {
      const earlier = had.get(model);
      if (earlier === undefined) counts.addedModels += 1;
      else if (earlier !== row) counts.changedModels += 1;
    }
    counts.removedModels += [...had.keys()].filter((model) => !has.has(model)).length;
  }
  return {
    addedProviders: [...fresh.keys()].filter((id) => !old.has(id)),
    removedProviders: [...old.keys()].filter((id) => !fresh.has(id)),
    changedAddresses: [...fresh.values()].flatMap(({ id, baseUrl }) => {
      const from = old.get(id)?.baseUrl;
      return from === undefined || from === baseUrl ? [] : [{ provider: id, from, to: baseUrl }];
    }),
    ...counts,
  };
}

/** The old content or the new one, at any moment. */
async function replaceFile(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomBytes(6).toString("hex")}.new`;
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    {
      await using handle = await open(fresh, "wx", 0o600);
      await handle.writeFile(text);
      await handle.sync();
    }
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw homeFault("write", file, error);
  }
}

function homeFault(what: "write" | "remove", file: string, cause: unknown): HeddleError {
  const why = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new HeddleError(hostFaultOr(cause, "store.failed"), `cannot ${what} ${file}${why}`, { cause });
}
