/**
 * Names of files in an inbox, and what they mean.
 *
 *   fix.md                                an order
 *   fix.md.taking-ORDER                   taken; the next process continues with the same id
 *   fix.md.processed-TASK                 became a task
 *   fix.md.error-WHY, … .reason.txt       was refused
 *   fix.status.md, fix.result.md          answers about the task
 */
import path from "node:path";
import { isUuid } from "@heddle/protocol";

export const ORDER_ENDINGS = [".md", ".markdown", ".txt", ".yaml", ".yml", ".json", ".docx"] as const;

export type Named =
  | { readonly kind: "order" }
  /** `original`: its name before it was taken. */
  | { readonly kind: "taken"; readonly original: string; readonly orderId: string }
  | { readonly kind: "unknown-ending" }
  | { readonly kind: "ours" };

/** Editors, browsers and file sharing use these names until a file is whole; Word's lock files begin with `~$`. */
const UNFINISHED = /^~\$|(?:~|\.(?:tmp|temp|part|partial|swp|swx|crdownload|download|lock))$/i;
const OURS = /\.(?:processed-|error-)|\.(?:status|result)(?:\.\d+)?\.(?:md|markdown|txt|yaml|yml|json|docx)$/i;
const TAKEN = /^(.+)\.taking-([0-9a-f-]{36})$/;
const MAX_NAME_BYTES = 255;

export function readName(name: string): Named {
  const [, original, orderId] = TAKEN.exec(name) ?? [];
  if (original !== undefined && orderId !== undefined && isUuid(orderId)) return { kind: "taken", original, orderId };
  if (name.startsWith(".") || UNFINISHED.test(name) || OURS.test(name)) return { kind: "ours" };
  return endingOf(name) === undefined ? { kind: "unknown-ending" } : { kind: "order" };
}

export function endingOf(name: string): (typeof ORDER_ENDINGS)[number] | undefined {
  const ending = path.posix.extname(name).toLowerCase();
  return ORDER_ENDINGS.find((known) => known === ending);
}

/** `fix.md` → `fix.result.md`, then `fix.result.1.md`. */
export function answerPath(order: string, what: "status" | "result", number: number): string {
  const { dir, name, ext } = path.posix.parse(order);
  const middle = `.${what}${number === 0 ? "" : `.${number}`}${ext}`;
  return path.posix.join(dir, `${cutBytes(name, MAX_NAME_BYTES - Buffer.byteLength(middle))}${middle}`);
}

/** A long name is cut before its extension. */
export function renamed(order: string, to: "taking" | "processed" | "error", id: string): string {
  const suffix = `.${to}-${id}`;
  const { dir, name, ext } = path.posix.parse(order);
  // Leaves space for a number and for the name of the reason file.
  const room = MAX_NAME_BYTES - Buffer.byteLength(`${ext}${suffix}.1000.reason.txt`);
  return path.posix.join(dir, `${cutBytes(name, room)}${ext}${suffix}`);
}

function cutBytes(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  let cut = text;
  while (Buffer.byteLength(cut) > bytes) cut = cut.slice(0, -1);
  return cut;
}
