/**
 * YAML that people write for envelopes and gates. Every schema is closed: an unknown key or a wrong value is a problem with
 * its line. Anchors, aliases and several documents are refused, because nothing here needs them.
 */
import { didYouMean, HeddleError, PLAIN, type ErrorCode } from "@heddle/protocol";
import { isAlias, isMap, isScalar, LineCounter, parseDocument, visit, type Document } from "yaml";
import type { z } from "zod";

/** Throws with the line of a key, or of an entry of its list. */
export type Refuse = (path: readonly (string | number)[], message: string) => never;

interface Reading<T> {
  readonly file: string;
  readonly code: ErrorCode;
  readonly schema: z.ZodType<T>;
  /** Keys of the file. */
  readonly known: readonly string[];
}

export function readYaml<T>(text: string, reading: Reading<T>): { readonly data: T; readonly refuse: Refuse } {
  const { file, code } = reading;
  const lines = new LineCounter();
  const fail = (offset: number, message: string): never => {
    const { line } = lines.linePos(offset);
    throw new HeddleError(code, `${file}:${line}: ${message}`, { details: { file, line } });
  };
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: false, version: "1.2" });
  const [error] = document.errors;
  if (error !== undefined) fail(error.pos[0], "this is not YAML; put text with special characters in quotes");
  visit(document, {
    Node(_key, node) {
      if (isAlias(node) || ("anchor" in node && node.anchor !== undefined))
        fail(node.range?.[0] ?? 0, "anchors and aliases are not supported; write the value out");
    },
  });
  const refuse: Refuse = (path, message) => fail(offsetOf(document, path), message);
  const parsed = reading.schema.safeParse(document.toJS() ?? {}, PLAIN);
  return parsed.success ? { data: parsed.data, refuse } : refuseIssue(parsed.error, reading, refuse);
}

function refuseIssue<T>(error: z.ZodError, { known }: Reading<T>, refuse: Refuse): never {
  const [issue] = error.issues;
  const path = (issue?.path ?? []).map((part) => (typeof part === "number" ? part : String(part)));
  if (issue?.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    return refuse([...path, key], `unknown key "${key}"${path.length === 0 ? didYouMean(key, known) : ""}`);
  }
  return refuse(path, `${path.length === 0 ? "the file" : path.join(".")} ${issue?.message ?? "is not right"}`);
}

/** Where the key of a path begins, or the last of its parents that is there. */
function offsetOf({ contents }: Document.Parsed, path: readonly (string | number)[]): number {
  let node: unknown = contents;
  let offset = contents?.range[0] ?? 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === part);
      if (pair === undefined) break;
      if (isScalar(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (hasItems(node) && typeof part === "number") {
      node = node.items[part];
      offset = rangeOf(node) ?? offset;
    } else break;
  }
  return offset;
}

function hasItems(node: unknown): node is { readonly items: readonly unknown[] } {
  return typeof node === "object" && node !== null && "items" in node && Array.isArray(node.items);
}

function rangeOf(node: unknown): number | undefined {
  const range = typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
  const start: unknown = Array.isArray(range) ? range[0] : undefined;
  return typeof start === "number" ? start : undefined;
}
