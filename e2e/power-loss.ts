/**
 * What a disk may hold after the power went. Reads a trace of system calls and plays it up to any call: what was synced
 * is there; each write that was not may be there, may be missing, and may be torn between two sectors.
 */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

const SECTOR_BYTES = 512;

export type Operation =
  | { readonly kind: "write"; readonly file: string; readonly at: number | "end"; readonly bytes: Buffer }
  | { readonly kind: "truncate"; readonly file: string; readonly size: number }
  | { readonly kind: "rename" | "link"; readonly file: string; readonly to: string }
  | { readonly kind: "unlink" | "sync"; readonly file: string };

export const TRACED_CALLS = "pwrite64,write,fsync,fdatasync,ftruncate,rename,unlink,link";

/** Parses the output of `strace -f -y -xx`; a call that another thread interrupted is put together again. */
export function parseTrace(text: string): readonly Operation[] {
  const pending = new Map<string, string>();
  const operations: Operation[] = [];
  for (const line of text.split("\n")) {
    const [, pid = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const begun = /^(.*) <unfinished \.\.\.>$/.exec(rest)?.[1];
    if (begun !== undefined) {
      pending.set(pid, begun);
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1];
    const operation = parseCall(resumed === undefined ? rest : `${pending.get(pid) ?? ""}${resumed}`);
    if (operation !== undefined) operations.push(operation);
  }
  return operations;
}

const HEX = String.raw`((?:\\x[0-9a-f]{2})*)`;
const WRITE = new RegExp(String.raw`^p?write(?:64)?\(\d+<${HEX}>, "${HEX}", \d+(?:, (\d+))?\) += (\d+)$`);
const SYNC = new RegExp(String.raw`^f(?:data)?sync\(\d+<${HEX}>\) += 0$`);
const TRUNCATE = new RegExp(String.raw`^ftruncate\(\d+<${HEX}>, (\d+)\) += 0$`);
const NAMES = new RegExp(String.raw`^(rename|link|unlink)\("${HEX}"(?:, "${HEX}")?\) += 0$`);

function parseCall(call: string): Operation | undefined {
  const write = WRITE.exec(call);
  if (write !== null) {
    const [, file, data, at, written] = write;
    const bytes = unhex(data).subarray(0, Number(written));
    return { kind: "write", file: unhex(file).toString(), at: at === undefined ? "end" : Number(at), bytes };
  }
  const sync = SYNC.exec(call);
  if (sync !== null) return { kind: "sync", file: unhex(sync[1]).toString() };
  const cut = TRUNCATE.exec(call);
  if (cut !== null) return { kind: "truncate", file: unhex(cut[1]).toString(), size: Number(cut[2]) };
  const [, kind, from, to] = NAMES.exec(call) ?? [];
  const file = unhex(from).toString();
  if (kind === "unlink") return { kind, file };
  return kind === "rename" || kind === "link" ? { kind, file, to: unhex(to).toString() } : undefined;
}

function unhex(text: string | undefined): Buffer {
  return Buffer.from((text ?? "").replaceAll(String.raw`\x`, ""), "hex");
}

interface DiskFile {
  /** What a reader sees while the power is on. */
  now: Buffer;
  synced: Buffer;
  /** Since the last sync, oldest first. */
  unsynced: Change[];
  isDurable: boolean;
  /** Its name was taken away, and the folder was not synced since: it may come back. */
  isUnlinked: boolean;
}

type Change = { readonly at: number; readonly bytes: Buffer } | { readonly size: number };

/** The files under one folder, as operations change them. */
export class Disk {
  readonly #home: string;
  readonly #files = new Map<string, DiskFile>();

  constructor(home: string) {
    this.#home = home;
  }

  apply(operation: Operation): void {
    if (operation.file !== this.#home && !operation.file.startsWith(`${this.#home}/`)) return;
    const known = this.#files.get(operation.file);
    const isNew = known === undefined || (known.isUnlinked && operation.kind === "write");
    const file = isNew ? newFile() : known;
    switch (operation.kind) {
      case "write": {
        const { bytes } = operation;
        const at = operation.at === "end" ? file.now.length : operation.at;
        file.now = put(file.now, at, bytes);
        file.unsynced.push({ at, bytes });
        this.#files.set(operation.file, file);
        return;
      }
      case "truncate":
        file.now = file.now.subarray(0, operation.size);
        file.unsynced.push({ size: operation.size });
        this.#files.set(operation.file, file);
        return;
      case "sync":
        if (isNew) this.#syncFolder(operation.file);
        else Object.assign(file, { synced: file.now, unsynced: [], isDurable: true });
        return;
      case "rename":
        this.#files.delete(operation.file);
        this.#files.set(operation.to, file);
        return;
      case "link":
        this.#files.set(operation.to, { ...file, unsynced: [...file.unsynced], isDurable: false });
        return;
      case "unlink":
        file.isUnlinked = true;
    }
  }

  /** One of the many states the disk may be found in if the power goes now. */
  async writeTo(folder: string, random: () => number): Promise<void> {
    await mkdir(folder, { recursive: true });
    for (const [name, file] of this.#files) {
      if ((!file.isDurable || file.isUnlinked) && random() < 0.5) continue;
      let bytes = file.synced;
      for (const change of file.unsynced) if (random() < 0.5) bytes = changed(bytes, change, random);
      const target = path.join(folder, path.relative(this.#home, name));
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(target, bytes, { mode: 0o600 });
    }
  }

  /** New names are on disk, and old ones are gone. */
  #syncFolder(folder: string): void {
    for (const [name, file] of this.#files) {
      if (path.dirname(name) !== folder) continue;
      file.isDurable = true;
      if (file.isUnlinked) this.#files.delete(name);
    }
  }
}

const EMPTY = Buffer.alloc(0);

function newFile(): DiskFile {
  return { now: EMPTY, synced: EMPTY, unsynced: [], isDurable: false, isUnlinked: false };
}

function changed(disk: Buffer, change: Change, random: () => number): Buffer {
  if ("size" in change) return disk.subarray(0, change.size);
  const whole = Math.ceil(change.bytes.length / SECTOR_BYTES);
  const sectors = random() < 0.5 ? whole : Math.floor(random() * (whole + 1));
  return put(disk, change.at, change.bytes.subarray(0, sectors * SECTOR_BYTES));
}

/** A write behind the end leaves zeros between. */
function put(disk: Buffer, at: number, bytes: Buffer): Buffer {
  const result = Buffer.alloc(Math.max(disk.length, at + bytes.length));
  disk.copy(result);
  bytes.copy(result, at);
  return result;
}
