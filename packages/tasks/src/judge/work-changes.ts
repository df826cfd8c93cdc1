/**
 * What an attempt changed, as text of bounded size: read from the kept and the frozen files by Heddle itself, so that no
 * setting of the judged repository has a say, and nothing in it is obeyed by a terminal. Every file is named; none can
 * push another out of sight, because what is long is cut first.
 */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { visibleLine, visibleName, visibleText } from "@heddle/protocol";
import { unifiedDiff } from "@heddle/tools/files";
import { toRaw, toSystem, toText, isText } from "@heddle/tools/raw-path";
import type { Change, FrozenWork, KeptTree, RawPath, TreeEntry } from "../tree/manifest.ts";

/** Together a few ten thousand tokens. */
const MAX_CHARS = 60_000;
/** What is larger is said in words. */
const MAX_TEXT_BYTES = 1024 * 1024;
/** Names that are listed, and files whose content is shown; more are counted. */
const MAX_NAMED = 500;
const MAX_SHOWN = 200;

export interface WorkToShow {
  readonly base: Pick<KeptTree, "folder">;
  readonly frozen: Pick<FrozenWork, "folder">;
  /** Of the frozen work. */
  readonly changes: readonly Change[];
}

export function describeWork(work: WorkToShow, { maxChars = MAX_CHARS }: { readonly maxChars?: number } = {}): string {
  const changes = work.changes.filter((change) => !isPlainFolder(change));
  if (changes.length === 0) return "Nothing has changed.";
  const named = changes.slice(0, MAX_NAMED).map((change) => headline(change));
  if (changes.length > MAX_NAMED) named.push(`and ${changes.length - MAX_NAMED} more`);
  const list = `${changes.length} ${changes.length === 1 ? "file has" : "files have"} changed:\n${named.join("\n")}\n`;
  const head = cut(list, Math.floor(maxChars / 2));
  const parts = changes.slice(0, MAX_SHOWN).flatMap((change) => bodyOf(work, change));
  const left =
    changes.length > MAX_SHOWN ? [`\nThe content of ${changes.length - MAX_SHOWN} more is not shown.\n`] : [];
  return [head, ...fit(parts, maxChars - head.length), ...left].join("");
}

/** A folder is seen by what is in it. */
function isPlainFolder({ now, before, how }: Change): boolean {
  return how === "removed" ? before?.kind === "folder" : now?.kind === "folder" && before?.kind !== "file";
}

/** As it is where it is plain, or in quotes with the rest escaped: no two names look the same, and none like several. */
export function shownPath(path: RawPath): string {
  if (isText(path) && visibleName(toText(path)) === toText(path)) return toText(path);
  const doubled = path.replaceAll(/["\\]/g, String.raw`\$&`);
  const line = visibleLine(isText(doubled) ? toText(doubled) : doubled.replaceAll(/[^\x20-\x7e]/g, escapeByte));
  return `"${line}"`;
}

function escapeByte(byte: string): string {
  return `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

function headline({ path, how, now, before }: Change): string {
  const name = shownPath(path);
  if (how === "removed") return `removed ${kindOf(before)} ${name}`;
  if (how === "added") return `new ${kindOf(now)} ${name}${modeOf(now)}`;
  if (now?.kind !== before?.kind) return `changed ${name}: was a ${kindOf(before)}, is a ${kindOf(now)}`;
  const mode = now?.kind === "file" && now.mode !== before?.mode ? `, mode ${octal(before)} → ${octal(now)}` : "";
  return `changed ${kindOf(now)} ${name}${mode}`;
}

function kindOf(entry: TreeEntry | undefined): string {
  return entry?.kind === "other" ? "pipe, socket or device" : (entry?.kind ?? "file");
}

function modeOf(entry: TreeEntry | undefined): string {
  return entry?.kind === "file" && (entry.mode & 0o111) !== 0 ? ", executable" : "";
}

function octal(entry: TreeEntry | undefined): string {
  return (entry?.mode ?? 0).toString(8).padStart(4, "0");
}

/** Of one file, without its name. undefined: nothing but what its name and mode say, or its content was not kept. */
export function diffOf(work: Pick<WorkToShow, "base" | "frozen">, change: Change): string | undefined {
  try {
    const [body] = bodyOf(work, change);
    return body?.slice(body.indexOf("\n", 1) + 1);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Nothing where the headline says it all. */
function bodyOf(work: Pick<WorkToShow, "base" | "frozen">, change: Change): string[] {
  const { path, now, before } = change;
  // No line of a diff begins like this.
  const title = `\n=== ${headline(change)}\n`;
  if (now?.kind === "link" || before?.kind === "link") {
    const to = (entry: TreeEntry | undefined, sign: string): string =>
      entry?.kind === "link" ? `${sign}${shownPath(entry.target ?? "")}\n` : "";
    return [`${title}${to(before, "-leads to ")}${to(now, "+leads to ")}`];
  }
  const old = before?.kind === "file" ? contentOf(work.base.folder, path, before) : "";
  const fresh = now?.kind === "file" ? contentOf(work.frozen.folder, path, now) : "";
  if (before?.kind !== "file" && now?.kind !== "file") return [];
  if (old === undefined || fresh === undefined) {
    const size = (entry: TreeEntry | undefined): string => (entry?.kind === "file" ? `${entry.size} bytes` : "nothing");
    return [`${title}not shown, because it is not text, or too large: ${size(before)} before, ${size(now)} now\n`];
  }
  if (old === fresh) return [];
  const { diff, diffTruncatedBytes } = unifiedDiff(old, fresh);
  const more = diffTruncatedBytes === undefined ? "" : `[... ${diffTruncatedBytes} bytes left out ...]\n`;
  return [`${title}${visibleText(diff)}${more}`];
}

/** Undefined when it is no text, or too large to be shown. */
function contentOf(folder: string, path: RawPath, { size }: TreeEntry): string | undefined {
  if (size > MAX_TEXT_BYTES) return undefined;
  const fd = openSync(toSystem(`${toRaw(folder)}/${path}`), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const bytes = Buffer.alloc(size);
    for (let at = 0; at < size;) {
      const read = readSync(fd, bytes, at, size - at, at);
      if (read === 0) return undefined;
      at += read;
    }
    return bytes.includes(0) ? undefined : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** Short ones whole, long ones cut to an equal share of what is left. */
function fit(parts: readonly string[], maxChars: number): readonly string[] {
  let left = Math.max(0, maxChars);
  let share = 0;
  const lengths = parts.map(({ length }) => length).toSorted((a, b) => a - b);
  for (const [index, length] of lengths.entries()) {
    share = Math.floor(left / (lengths.length - index));
    if (length > share) break;
    share = length;
    left -= length;
  }
  return parts.map((part) => (part.length <= share ? part : cut(part, share)));
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()}\n[... ${text.length - most} characters left out ...]\n`;
}
