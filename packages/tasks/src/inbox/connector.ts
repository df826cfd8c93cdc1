/** Where orders lie: a folder of this machine (fs-connector.ts), or whatever else can list, fetch, put, remove and move. */
import { HeddleError } from "@heddle/protocol";

export interface FileEntry {
  /** Relative to the place, with slashes. */
  readonly path: string;
  /** `other`: a link, a pipe, a device; never opened. */
  readonly kind: "file" | "folder" | "other";
  readonly sizeBytes: number;
  readonly modifiedAt: number;
  /** When it came to where it is, as far as that can be known; orders are taken by it. */
  readonly arrivedAt: number;
  /** When anything about it last changed, which whoever wrote it cannot set; absent: the place does not say. */
  readonly changedAt?: number;
  /** Of this file and no other, while it exists. */
  readonly identity: string;
}

export interface Download {
  readonly bytes: Uint8Array;
  /** After it was read: another one than before means that somebody writes. */
  readonly modifiedAt: number;
}

export interface Connector {
  /** How the place is called in records: an absolute folder. */
  readonly place: string;
  /** True: it was not there and was made. */
  ensure(): Promise<boolean>;
  /** Of one folder, "" for the place itself. Empty when it is gone. Files that are skipped need not be looked at. */
  ls(folder: string, options: { readonly skips: (name: string) => boolean }): Promise<readonly FileEntry[]>;
  /** undefined: it is gone. */
  download(path: string, options: { readonly maxBytes: number }): Promise<Download | undefined>;
  /** Whole or not at all. */
  upload(path: string, bytes: string | Uint8Array): Promise<void>;
  delete(path: string): Promise<void>;
  /** Where it is now: `to`, with a number where that was taken. undefined: it is gone, or somebody else has moved it. */
  move(from: string, to: string): Promise<string | undefined>;
  /** Calls when something may have changed; a place without it is looked at once in a while only. */
  watch?(folders: readonly string[], onChange: () => void): Disposable;
}

/** The parts of a path that stays below its place, whatever it tries. */
export function innerParts(given: string): readonly string[] {
  const parts = given.split("/");
  const isOut = given.includes("\0") || parts.some((part) => part === "" || part === "." || part === "..");
  if (isOut) throw new HeddleError("path.outside", `${JSON.stringify(given)} leads out of the inbox`);
  return parts;
}
