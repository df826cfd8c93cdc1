/**
 * The path rules on text alone, before anything is opened, so that dispatch refuses early with a reason. Not final,
 * because a link can make any text mean another file; opening checks again.
 */
import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { attempt } from "../attempt.ts";
import { isWithin } from "../sandbox/mountinfo.ts";
import { protectedPart } from "./protected.ts";

export interface PathRules {
  /** Absolute folders that may be written. */
  readonly writeRoots: readonly string[];
  /** Absolute paths that may be read besides; absent: all. Where a link leads is listed too. */
  readonly readRoots?: readonly string[] | undefined;
  /** Absolute paths that do not exist for the agent. */
  readonly masked: readonly string[];
}

/** What Linux itself allows, its closing NUL left out. */
const MAX_PATH_BYTES = 4095;

/** Not files but doors into the kernel and into other processes. */
const KERNEL_FOLDERS: ReadonlySet<string> = new Set(["proc", "dev", "sys"]);

export function checkPath(path: string, access: "read" | "write", rules: PathRules): void {
  checkForm(path);
  const parts = components(path);
  if (isKernelPath(parts)) throw invalid(path, "files of the kernel and devices are not available");
  const roots = rules.writeRoots.flatMap(asGivenAndReal).filter((root) => isWithin(path, root));
  for (const masked of rules.masked.flatMap(asGivenAndReal)) {
    // As in the sandbox: a writable folder inside a masked one is visible.
    const isShown = roots.some((root) => root !== masked && isWithin(root, masked));
    if (isWithin(path, masked) && !isShown) throw outside(path);
  }
  if (access === "read") {
    if (roots.length === 0) checkReadable(path, rules);
    return;
  }
  if (roots.length === 0) throw notWritable(path);
  for (const root of roots) checkProtected(path, components(path.slice(root.length)));
}

/** Of a path that may not be written. */
export function checkReadable(path: string, { readRoots }: PathRules): void {
  if (readRoots?.some((root) => isWithin(path, root)) === false) throw outside(path);
}

export function checkForm(path: string): void {
  if (path.includes("\0")) throw invalid(path, "it contains a NUL byte");
  if (!path.isWellFormed()) throw invalid(path, "it is not valid Unicode");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw invalid(path, `it is longer than ${MAX_PATH_BYTES} bytes`);
  if (path.startsWith("~")) throw invalid(path, "a leading ~ is not expanded; write the absolute path");
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) throw invalid(path, "it is an address, not a file path");
  if (!path.startsWith("/")) throw invalid(path, "it is not absolute");
  if (resolve(path) !== path) throw invalid(path, "it is not in its shortest form");
}

export function isKernelPath(parts: readonly string[]): boolean {
  return parts[0] !== undefined && KERNEL_FOLDERS.has(parts[0]);
}

export function checkProtected(path: string, belowRoot: readonly string[]): void {
  const part = protectedPart(belowRoot);
  if (part === undefined) return;
  throw new HeddleError("path.protected", `${path} is protected (${part}): programs outside Heddle act on it`, {
    details: { path },
  });
}

export function components(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}

/** A root or a mask may itself be reached through a link; both spellings mean it. */
function asGivenAndReal(path: string): string[] {
  return [...new Set([path, attempt(() => realpathSync(path)) ?? path])];
}

export function invalid(path: string, reason: string, cause?: unknown): HeddleError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new HeddleError("path.invalid", `${JSON.stringify(shown)} cannot be used as a path: ${reason}`, { cause });
}

/** One message for masked and for missing paths: no hint at what exists. */
export function outside(path: string): HeddleError {
  return new HeddleError("path.outside", `${path} is not available here`, { details: { path } });
}

export function notWritable(path: string): HeddleError {
  return new HeddleError("path.outside", `${path} is outside the folders that may be written`, { details: { path } });
}
