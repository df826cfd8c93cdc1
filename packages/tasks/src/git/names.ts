/** Strict parsing of names in a git folder: what git would not write is not read. */
import type { ObjectFormat } from "./own-git.ts";

export const LOOSE_OBJECT = /^[0-9a-f]{2}\/(?:[0-9a-f]{38}|[0-9a-f]{62})$/;
export const PACK_FILE = /^pack\/pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.(?:pack|idx)$/;

export function isObjectName(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

export function formatOf(object: string): ObjectFormat {
  return object.length === 64 ? "sha256" : "sha1";
}

/** The rules of `git check-ref-format`, for names of branches and the like below `refs/`. */
export function isRefName(name: string): boolean {
  if (!name.startsWith("refs/") || name.length > 1_000) return false;
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\.$|\/$/.test(name)) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}
