/**
 * Parses the "*** Begin Patch" grammar into operations, without reading files. A text that is not a patch throws
 * `tool.invalid-arguments` with the wrong line, so that a model can fix it.
 */
import { HeddleError } from "@heddle/protocol";

/** One change in a file: find `oldLines` after the `contexts` and replace them by `newLines`. */
export interface PatchChunk {
  /** Lines named after `@@`, outermost first; the search starts after the last of them. */
  readonly contexts: readonly string[];
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  readonly isAtEnd: boolean;
}

export type PatchOperation =
  | { readonly kind: "add"; readonly path: string; readonly content: string }
  | { readonly kind: "delete"; readonly path: string }
  | {
      readonly kind: "update";
      readonly path: string;
      readonly moveTo?: string;
      readonly chunks: readonly PatchChunk[];
    };

const BEGIN = "*** Begin Patch";
const END = "*** End Patch";
const ADD = "*** Add File: ";
const DELETE = "*** Delete File: ";
const UPDATE = "*** Update File: ";
const MOVE = "*** Move to: ";
const END_OF_FILE = "*** End of File";

/** Enough for a rename across a large tree; more is a runaway model. */
const MAX_OPERATIONS = 1000;

export function parsePatch(text: string): PatchOperation[] {
  const lines = new Lines(bodyOf(text));
  const operations: PatchOperation[] = [];
  for (let line = lines.peek(); line !== undefined; line = lines.peek()) {
    if (line.trim() === "") lines.next();
    else operations.push(parseOperation(lines));
    if (operations.length > MAX_OPERATIONS) throw broken(`more than ${MAX_OPERATIONS} files in one patch`);
  }
  if (operations.length === 0) throw broken("the patch changes no file");
  return operations;
}

/** The lines between Begin and End. Models wrap patches in heredocs and blank lines; both are taken off. */
function bodyOf(text: string): { readonly lines: readonly string[]; readonly firstNumber: number } {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const begin = lines.findIndex((line) => line.trim() !== "" && !/^<<-?\s*['"]?\w+['"]?$/.test(line.trim()));
  if (begin === -1 || lines[begin]?.trim() !== BEGIN) throw broken(`the first line must be "${BEGIN}"`);
  const end = lines.findIndex((line, index) => index > begin && line.trim() === END);
  if (end === -1) throw broken(`the last line must be "${END}"`);
  const rest = lines.slice(end + 1).filter((line) => line.trim() !== "");
  if (rest.length > 1 || (rest.length === 1 && !/^\w+$/.test(rest[0]?.trim() ?? ""))) {
    throw broken(`text after "${END}"`);
  }
  return { lines: lines.slice(begin + 1, end), firstNumber: begin + 2 };
}

class Lines {
  readonly #lines: readonly string[];
  readonly #firstNumber: number;
  #index = 0;

  constructor(body: { readonly lines: readonly string[]; readonly firstNumber: number }) {
    this.#lines = body.lines;
    this.#firstNumber = body.firstNumber;
  }

  peek(ahead = 0): string | undefined {
    return this.#lines[this.#index + ahead];
  }

  next(): void {
    this.#index += 1;
  }

  get number(): number {
    return this.#firstNumber + this.#index;
  }
}

function parseOperation(lines: Lines): PatchOperation {
  const header = (lines.peek() ?? "").trimEnd();
  const number = lines.number;
  lines.next();
  if (header.startsWith(ADD)) return parseAdd(pathOf(header, ADD, number), lines);
  if (header.startsWith(DELETE)) return { kind: "delete", path: pathOf(header, DELETE, number) };
  if (header.startsWith(UPDATE)) return parseUpdate(pathOf(header, UPDATE, number), lines);
  throw broken(
    `line ${number}: expected "${ADD.trim()}", "${DELETE.trim()}" or "${UPDATE.trim()}", found ${quote(header)}`,
  );
}

function pathOf(header: string, prefix: string, number: number): string {
  const path = header.slice(prefix.length).trim();
  if (path === "") throw broken(`line ${number}: a path is missing after "${prefix.trim()}"`);
  return path;
}

function parseAdd(path: string, lines: Lines): PatchOperation {
  const content: string[] = [];
  for (let line = lines.peek(); line?.startsWith("+") === true; line = lines.peek()) {
    content.push(line.slice(1));
    lines.next();
  }
  return { kind: "add", path, content: content.map((line) => `${line}\n`).join("") };
}

function parseUpdate(path: string, lines: Lines): PatchOperation {
  const start = lines.number;
  const move = lines.peek();
  const moveTo = move?.startsWith(MOVE) === true ? pathOf(move.trimEnd(), MOVE, lines.number) : undefined;
  if (moveTo !== undefined) lines.next();
  const chunks: PatchChunk[] = [];
  for (let line = lines.peek(); line !== undefined && !startsOperation(line); line = lines.peek()) {
    // A blank line between operations is not a chunk.
    if (line.trim() === "" && chunks.length > 0 && nextIsOperation(lines)) break;
    chunks.push(parseChunk(lines));
  }
  if (chunks.length === 0 && moveTo === undefined) {
    throw broken(`line ${start}: the update of ${quote(path)} has no lines`);
  }
  return moveTo === undefined ? { kind: "update", path, chunks } : { kind: "update", path, moveTo, chunks };
}

function parseChunk(lines: Lines): PatchChunk {
  const contexts: string[] = [];
  const start = lines.number;
  for (let line = lines.peek(); line?.startsWith("@@") === true; line = lines.peek()) {
    const context = contextOf(line);
    if (context !== undefined) contexts.push(context);
    lines.next();
  }
  const oldLines: string[] = [];
  const newLines: string[] = [];
  let isAtEnd = false;
  for (let line = lines.peek(); line !== undefined && !isAtEnd; line = lines.peek()) {
    if (line.startsWith("@@") || startsOperation(line)) break;
    if (line === "" && nextIsOperation(lines)) break;
    if (line.trimEnd() === END_OF_FILE) isAtEnd = true;
    else takeLine(line, { oldLines, newLines, number: lines.number });
    lines.next();
  }
  if (oldLines.length === 0 && newLines.length === 0) throw broken(`line ${start}: a chunk without lines`);
  return { contexts, oldLines, newLines, isAtEnd };
}

function takeLine(
  line: string,
  into: { readonly oldLines: string[]; readonly newLines: string[]; readonly number: number },
): void {
  const text = line.slice(1);
  switch (line[0]) {
    case "+":
      into.newLines.push(text);
      return;
    case "-":
      into.oldLines.push(text);
      return;
    // An empty line is an empty context line whose leading space was lost on the way.
    case undefined:
    case " ":
      into.oldLines.push(text);
      into.newLines.push(text);
      return;
    default:
      throw broken(`line ${into.number}: lines of an update start with " ", "+", "-" or "@@", found ${quote(line)}`);
  }
}

/** `@@ -1,3 +1,4 @@` is the habit of unified diffs; its numbers are not trusted and its tail is not a context. */
function contextOf(line: string): string | undefined {
  const text = line.slice(2).replace(/^ /, "");
  if (text.trim() === "" || /^-\d+(,\d+)? \+\d+(,\d+)? @@/.test(text)) return undefined;
  return text;
}

function startsOperation(line: string): boolean {
  return line.startsWith(ADD) || line.startsWith(DELETE) || line.startsWith(UPDATE);
}

function nextIsOperation(lines: Lines): boolean {
  for (let ahead = 1; ; ahead += 1) {
    const line = lines.peek(ahead);
    if (line === undefined || startsOperation(line)) return true;
    if (line.trim() !== "") return false;
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);
}

function broken(reason: string): HeddleError {
  return new HeddleError("tool.invalid-arguments", `invalid patch: ${reason}`);
}
