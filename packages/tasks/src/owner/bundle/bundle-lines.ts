/**
 * A bundle: everything that is needed to judge a task again elsewhere, as gzip of JSON lines.
 *
 *   header · record* (the task's events with their hash chain and checkpoints, as journal exports have them)
 *   tree · { entry · data* }*  (the workspace at the beginning)
 *   work · { change · data* }* (what was frozen and judged)
 *   before · { change · data* }* (only where earlier agents had left something: what takes it back)
 *   end (how many lines there were, their hash, and the signature of the home that wrote them)
 *
 * Paths are raw: one character for each byte. Content follows its entry in pieces of base64.
 */
import { z } from "zod";
import type { TreeEntry } from "../../tree/manifest.ts";

export const FORMAT = "heddle-task-bundle";
/** Of content in one line. */
export const PIECE_BYTES = 256 * 1024;

const Row = z.strictObject({
  kind: z.enum(["file", "link", "folder", "other"]),
  mode: z.int().min(0).max(0o7777),
  size: z.int().min(0),
  mtimeNs: z.string().regex(/^-?\d{1,19}$/),
  sha256: z.string().regex(/^([0-9a-f]{64})?$/),
  target: z.string().max(4096).optional(),
});
type Row = z.infer<typeof Row>;

export const BundleLine = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("header"), format: z.literal(FORMAT), v: z.literal(1), task: z.string() }),
  z.strictObject({ kind: z.literal("record"), line: z.string() }),
  z.strictObject({ kind: z.literal("tree"), skipped: z.array(z.string()) }),
  z.strictObject({ kind: z.literal("entry"), path: z.string(), entry: Row }),
  z.strictObject({ kind: z.literal("work"), round: z.int().positive() }),
  z.strictObject({ kind: z.literal("before") }),
  z.strictObject({
    kind: z.literal("change"),
    how: z.enum(["added", "changed", "removed"]),
    path: z.string(),
    now: Row.optional(),
    before: Row.optional(),
    /** Its content follows; of what is not delivered only the hash may be known. */
    hasContent: z.boolean(),
  }),
  z.strictObject({ kind: z.literal("data"), base64: z.base64().max(PIECE_BYTES * 2) }),
  z.strictObject({ kind: z.literal("end"), lines: z.int(), sha256: z.string(), signature: z.string().optional() }),
]);
export type BundleLine = z.infer<typeof BundleLine>;

export function toRow({ kind, mode, size, mtimeNs, sha256, target }: TreeEntry): Row {
  return { kind, mode, size, mtimeNs: String(mtimeNs), sha256, ...(target === undefined ? {} : { target }) };
}

export function fromRow({ kind, mode, size, mtimeNs, sha256, target }: Row): TreeEntry {
  return { kind, mode, size, mtimeNs: BigInt(mtimeNs), sha256, ...(target === undefined ? {} : { target }) };
}
