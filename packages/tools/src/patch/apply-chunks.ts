/**
 * Applies the chunks of one update to one text. Pure: either every chunk fits and the new text is returned, or
 * `tool.failed` names the lines that were not found. Line ends, a byte order mark and a missing final newline are kept.
 */
import { HeddleError } from "@heddle/protocol";
import { markHint } from "../calls/redaction-mark.ts";
import type { PatchChunk } from "./parse.ts";

interface Replacement {
  readonly at: number;
  readonly deleteCount: number;
  readonly lines: readonly string[];
}

export function applyChunks(text: string, chunks: readonly PatchChunk[], path: string): string {
  const file = takeApart(text);
  const replacements = locate(file.lines, chunks, path);
  const lines: string[] = [];
  let cursor = 0;
  for (const replacement of replacements) {
    lines.push(...file.lines.slice(cursor, replacement.at), ...replacement.lines);
    cursor = replacement.at + replacement.deleteCount;
  }
  lines.push(...file.lines.slice(cursor));
  return putTogether({ ...file, lines });
}

interface TextFile {
  readonly bom: string;
  readonly eol: string;
  readonly lines: readonly string[];
  readonly hasFinalNewline: boolean;
}

function takeApart(text: string): TextFile {
  const bom = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const body = text.slice(bom.length);
  // Only a file that uses CRLF throughout is rewritten with CRLF; in a mixed one every line keeps its own end.
  const isCrlf = body.includes("\r\n") && !/(^|[^\r])\n/.test(body);
  const lines = (isCrlf ? body.replaceAll("\r\n", "\n") : body).split("\n");
  const hasFinalNewline = lines.at(-1) === "";
  if (hasFinalNewline) lines.pop();
  return { bom, eol: isCrlf ? "\r\n" : "\n", lines, hasFinalNewline };
}

function putTogether(file: TextFile): string {
  if (file.lines.length === 0) return file.bom;
  return file.bom + file.lines.join(file.eol) + (file.hasFinalNewline ? file.eol : "");
}

function locate(lines: readonly string[], chunks: readonly PatchChunk[], path: string): Replacement[] {
  const replacements: Replacement[] = [];
  let cursor = 0;
  for (const chunk of chunks) {
    for (const context of chunk.contexts) {
      const at = seek(lines, [context], { from: cursor, isAtEnd: false });
      if (at === undefined) throw notFound(path, "the line after @@", [context]);
      cursor = at + 1;
    }
    const replacement = locateChunk(lines, chunk, cursor);
    if (replacement === undefined) throw notFound(path, "these lines", chunk.oldLines);
    replacements.push(replacement);
    cursor = replacement.at + replacement.deleteCount;
  }
  return replacements;
}

function locateChunk(lines: readonly string[], chunk: PatchChunk, cursor: number): Replacement | undefined {
  if (chunk.oldLines.length === 0) {
    const at = chunk.contexts.length > 0 && !chunk.isAtEnd ? cursor : lines.length;
    return { at, deleteCount: 0, lines: chunk.newLines };
  }
  const at = seek(lines, chunk.oldLines, { from: cursor, isAtEnd: chunk.isAtEnd });
  if (at !== undefined) return { at, deleteCount: chunk.oldLines.length, lines: keepUntouched(lines, chunk, at) };
  // A blank last line often stands for the final newline, which is not a line of the file.
  if (chunk.oldLines.length > 1 && chunk.oldLines.at(-1) === "") {
    const isBothBlank = chunk.newLines.at(-1) === "";
    const shorter: PatchChunk = {
      ...chunk,
      oldLines: chunk.oldLines.slice(0, -1),
      newLines: isBothBlank ? chunk.newLines.slice(0, -1) : chunk.newLines,
    };
    return locateChunk(lines, shorter, cursor);
  }
  return undefined;
}

/**
 * Context lines that matched only loosely stay as they are in the file: a patch must not rewrite the
 * whitespace or punctuation of lines it merely names.
 */
function keepUntouched(lines: readonly string[], chunk: PatchChunk, at: number): string[] {
  const kept = [...chunk.newLines];
  const { oldLines, newLines } = chunk;
  let head = 0;
  while (head < oldLines.length && head < newLines.length && oldLines[head] === newLines[head]) {
    kept[head] = lines[at + head] ?? "";
    head += 1;
  }
  let tail = 1;
  while (
    tail <= oldLines.length - head &&
    tail <= newLines.length - head &&
    oldLines.at(-tail) === newLines.at(-tail)
  ) {
    kept[kept.length - tail] = lines[at + oldLines.length - tail] ?? "";
    tail += 1;
  }
  return kept;
}

/** From strict to loose. A looser level is tried only when no position in the rest of the file fits a stricter one. */
const LEVELS: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  (line) => plainPunctuation(line.trim()),
];

function seek(
  lines: readonly string[],
  wanted: readonly string[],
  options: { readonly from: number; readonly isAtEnd: boolean },
): number | undefined {
  const last = lines.length - wanted.length;
  if (last < options.from) return undefined;
  for (const level of LEVELS) {
    const leveled = lines.map(level);
    const pattern = wanted.map(level);
    if (options.isAtEnd && matchesAt(leveled, pattern, last)) return last;
    for (let at = options.from; at <= last; at += 1) {
      if (matchesAt(leveled, pattern, at)) return at;
    }
  }
  return undefined;
}

function matchesAt(lines: readonly string[], pattern: readonly string[], at: number): boolean {
  return pattern.every((line, index) => line === lines[at + index]);
}

/** Models type plain quotes, dashes and spaces where files hold typographic ones. */
function plainPunctuation(line: string): string {
  return line
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u2018-\u201B]/g, "'")
    .replace(/[\u201C-\u201F]/g, '"')
    .replace(/\u2026/g, "...")
    .replace(/[\u00A0\u2002-\u200A\u202F\u205F\u3000]/g, " ");
}

const MAX_SHOWN_LINES = 12;

function notFound(path: string, what: string, lines: readonly string[]): HeddleError {
  const shown = lines.slice(0, MAX_SHOWN_LINES).join("\n");
  const more = lines.length > MAX_SHOWN_LINES ? `\n(and ${lines.length - MAX_SHOWN_LINES} more lines)` : "";
  const hint = markHint(lines.join("\n"));
  const why = hint === undefined ? "" : `\n(${hint})`;
  return new HeddleError("tool.failed", `${path}: ${what} were not found in the file:\n${shown}${more}${why}`);
}
