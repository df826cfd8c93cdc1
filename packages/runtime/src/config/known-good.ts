/**
 * Remembers the last text of config.toml that passed every check of this very build, by its hash alone. Checking takes
 * longer than reading, and almost every run reads the text of the run before.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Which sources this program was built from; absent when it runs from source, where the checks may change any time. */
declare const HEDDLE_BUILD: string | undefined;

const FILE = "config-checked";

export function isKnownGood(cache: string, text: string): boolean {
  const mark = markOf(text);
  if (mark === undefined) return false;
  try {
    return readFileSync(path.join(cache, FILE), "utf8") === mark;
  } catch {
    return false;
  }
}

/** A memory that cannot be kept is no failure, only slower. A torn one matches nothing. */
export function rememberGood(cache: string, text: string): void {
  const mark = markOf(text);
  if (mark === undefined) return;
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    writeFileSync(path.join(cache, FILE), mark, { mode: 0o600 });
  } catch {
    // A read-only home, a full disk: the next run checks again.
  }
}

function markOf(text: string): string | undefined {
  if (typeof HEDDLE_BUILD === "undefined") return undefined;
  return createHash("sha256").update(`${HEDDLE_BUILD}\n${text}`).digest("hex");
}
