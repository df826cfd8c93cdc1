/**
 * Where the catalog is: the snapshot that comes with the program, and the copy that `heddle models --refresh` keeps in the
 * home. Each is read only when somebody asks for it. A copy that is damaged, or older than the snapshot, counts as none.
 */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { parseCatalog, type Catalog } from "./rows.ts";

export const REFRESHED_FILE = "models.jsonl";
/** Beside this module in a checkout, beside the bundle in the package. */
const SNAPSHOT = new URL("models-snapshot.jsonl", import.meta.url);

/** undefined where the file of the program is gone: prices and limits are unknown then, and that is said where it matters. */
export function readSnapshot(): Catalog | undefined {
  if (read === undefined) {
    const text = readText(SNAPSHOT);
    read = { snapshot: text === undefined ? undefined : parseCatalog(text) };
  }
  return read.snapshot;
}

/** It does not change while the program runs. */
let read: { readonly snapshot: Catalog | undefined } | undefined;

/** What is in the home, whatever its age and whoever wrote it: `trustedCatalog` says what of it counts. */
export function readRefreshed(home: string): Catalog | undefined {
  const text = readText(path.join(home, REFRESHED_FILE));
  return text === undefined ? undefined : parseCatalog(text);
}

/** More than a refresh keeps; a larger file is not one of Heddle's. */
const MAX_BYTES = 32 * 1024 * 1024;

function readText(file: string | URL): string | undefined {
  try {
    const found = statSync(file);
    return found.isFile() && found.size <= MAX_BYTES ? readFileSync(file, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
