/** Paths as models write them: made absolute, or refused when the spelling itself is a trick. */
import { isAbsolute, relative, resolve, sep } from "node:path";
import { HeddleError } from "@heddle/protocol";

const MAX_PATH_BYTES = 4096;

export function absolutePath(path: string, cwd: string): string {
  const reason = trickIn(path);
  if (reason !== undefined) {
    throw new HeddleError("path.invalid", `${JSON.stringify(path.slice(0, 200))} is not a usable path: ${reason}`);
  }
  return resolve(cwd, path);
}

function trickIn(path: string): string | undefined {
  if (path.trim() === "") return "it is empty";
  if (path.includes("\0")) return "it holds a NUL byte";
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `it is longer than ${MAX_PATH_BYTES} bytes`;
  if (path.startsWith("~")) return "a leading ~ is not expanded; write the absolute path";
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return "it is a URL; write a file path";
  if (path.includes("\\")) return "it holds a backslash";
  if (/^[a-z]:/i.test(path)) return "it names a drive";
  if (!path.isWellFormed()) return "it is not valid Unicode";
  return undefined;
}

/** True for `folder` itself and everything below it; both absolute and without `..`. */
export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
