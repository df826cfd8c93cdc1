/**
 * Downloads the catalog into the home. The download is limited, checked and written as a whole; when anything is wrong with
 * it, the old catalog stays. It never sends a key to a new address: `trust.ts` decides what it may change.
 */
import { rm } from "node:fs/promises";
import path from "node:path";
import { errorCodeOf, defined, HeddleError, hostFaultOr } from "@heddle/protocol";
import { pinnedFetch } from "../auth/pinned-fetch.ts";
import { isSafeUrl } from "../providers/provider-auth.ts";
import { replaceFile } from "../replace-file.ts";
import { REFRESHED_FILE } from "./files.ts";
import { importCatalog } from "./import.ts";
import { catalogsInForce, type CatalogKind } from "./lookup.ts";
import { catalogText, parseCatalog, type Catalog } from "./rows.ts";
import { trustedProviders, type LeftOut } from "./trust.ts";

const MODELS_URL = "https://models.dev/api.json";
export const LICENCE = "MIT, Copyright (c) 2025 models.dev";
/** About six times its size today. */
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

export interface RefreshReport {
  readonly url: string;
  readonly file: string;
  readonly date: string;
  readonly before: { readonly kind: CatalogKind; readonly date: string } | undefined;
  readonly providers: number;
  readonly models: number;
  readonly addedProviders: readonly string[];
  readonly removedProviders: readonly string[];
  /** Where requests and keys go. */
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
    ...defined({ signal: options.signal }),
  });
  const source = `${url.origin}${url.pathname}`;
  if (answer.status !== 200) {
    throw new HeddleError(
      "provider.rejected",
      `${source} answers with status ${answer.status}; the catalog stays as it was`,
    );
  }
  if (answer.json === undefined) {
    throw new HeddleError("provider.malformed", `${source} does not answer with JSON; the catalog stays as it was`);
  }
  const imported = importCatalog(answer.json);
  const { providers, leftOut } = trustedProviders(imported.providers);
  const date = (options.now?.() ?? new Date()).toISOString();
  const text = catalogText({ source, licence: LICENCE, date }, providers);
  const fresh = parseCatalog(text);
  if (fresh === undefined) throw new HeddleError("internal", "the new catalog cannot be read back");
  const [newest] = catalogsInForce(options.home);
  const file = path.join(options.home, REFRESHED_FILE);
  await replaceFile(file, text).catch((error: unknown) => {
    throw homeFault("write", file, error);
  });
  return {
    url: source,
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

/** Back to the snapshot of the program. False: there was no copy. */
export async function resetCatalog(home: string): Promise<boolean> {
  try {
    await rm(path.join(home, REFRESHED_FILE));
    return true;
  } catch (error) {
    if (errorCodeOf(error) === "ENOENT") return false;
    throw homeFault("remove", path.join(home, REFRESHED_FILE), error);
  }
}

function checkUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && isSafeUrl(url)) return url;
  throw new HeddleError("config.invalid", "models_url: must be an https address without credentials");
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

function homeFault(what: "write" | "remove", file: string, cause: unknown): HeddleError {
  const why = errorCodeOf(cause) ?? "unknown reason";
  return new HeddleError(hostFaultOr(cause, "store.failed"), `cannot ${what} ${file} (${why})`, { cause });
}
