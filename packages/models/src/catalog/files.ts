/**
 * Where the catalog is: the snapshot that comes with the program, and the copy that `heddle models --refresh` keeps in the
 * home. Each is read only when it is needed. A copy that is damaged, or older than the snapshot, is ignored.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import path from "node:path";
import { openCatalog, parseCatalog, type Catalog } from "./rows.ts";

export const REFRESHED_FILE = "models.jsonl";
/** Beside this module in a checkout, beside the bundle in the package. */
const SNAPSHOT = new URL("models-snapshot.jsonl", import.meta.url);

/** undefined where the file of the program is missing: prices and limits are unknown then. */
export function readSnapshot(): Catalog | undefined {
  read ??= { snapshot: openSnapshot() };
  return read.snapshot;
}

/** Half a megabyte, of which most runs need the first line: whether their provider is in it. */
function openSnapshot(): Catalog | undefined {
  const { first, length } = readFirstLine(SNAPSHOT) ?? {};
  if (first === undefined || length === undefined) return undefined;
  let text: string | undefined;
  // After an update of Heddle the lines of the file have other positions.
  const whole = (): string | undefined => (text ??= readText(SNAPSHOT));
  return openCatalog(first, {
    length,
    read: () => (whole()?.startsWith(`${first}\n`) === true ? whole() : undefined),
  });
}

/** It does not change while the program runs. */
let read: { readonly snapshot: Catalog | undefined } | undefined;

/** The copy in the home, unchecked: `trustedCatalog` decides what of it is used. */
export function readRefreshed(home: string): Catalog | undefined {
  const text = readText(path.join(home, REFRESHED_FILE));
  return text === undefined ? undefined : parseCatalog(text);
}

/** Three times the length of that of the snapshot. */
const MAX_FIRST_LINE_BYTES = 64 * 1024;

function readFirstLine(file: string | URL): { readonly first: string; readonly length: number } | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "r");
    const bytes = Buffer.allocUnsafe(MAX_FIRST_LINE_BYTES);
    const end = bytes.subarray(0, readSync(descriptor, bytes)).indexOf("\n");
    return end === -1 ? undefined : { first: bytes.toString("utf8", 0, end), length: fstatSync(descriptor).size };
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** More than a refresh writes. */
const MAX_BYTES = 32 * 1024 * 1024;

export function readText(file: string | URL): string | undefined {
  try {
    const found = statSync(file);
    return found.isFile() && found.size <= MAX_BYTES ? readFileSync(file, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
