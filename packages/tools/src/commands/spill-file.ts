/**
 * A whole output on disk, up to a quota, named by its own SHA-256 once it is complete and durable; until then it has a name
 * that ends in `.part`. Two fixed buffers: one is filled while the other is written; `write` returns a promise when the disk
 * is behind. A disk error ends the file, not the command: nothing of it stays, and the reason is in `error`.
 */
import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";

/** Enough to keep the disk busy. */
const BUFFER_BYTES = 1024 * 1024;

export class SpillFile {
  readonly #folder: string;
  readonly #part: string;
  readonly #quota: number;
  readonly #hash = createHash("sha256");
  #accepted = 0;
  #filling: Buffer = Buffer.alloc(0);
  #filled = 0;
  #spare: Buffer | undefined;
  /** Received while the buffer was full; small, because the writer waits. */
  #overflow: Buffer[] = [];
  #draining: Promise<void> | undefined;
  #handle: FileHandle | undefined;
  #isFull = false;
  #isStarted = false;
  #closing: Promise<void> | undefined;
  #blob: string | undefined;
  error: string | undefined;

  constructor(folder: string, quotaBytes: number) {
    this.#folder = folder;
    this.#part = join(folder, `${randomUUID()}.part`);
    this.#quota = quotaBytes;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** The SHA-256 of the content, which is its name in the folder; undefined until it is closed, and where the disk refused. */
  get blob(): string | undefined {
    return this.#blob;
  }

  /** The chunk may be reused at once. */
  write(chunk: Buffer): void | Promise<void> {
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.#filling = Buffer.allocUnsafeSlow(BUFFER_BYTES);
      this.#spare = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    }
    if (this.#isFull || this.error !== undefined) return;
    this.#take(chunk);
    if (this.#filled > BUFFER_BYTES / 2 || this.#overflow.length > 0) return this.#draining;
  }

  /** The mark counts toward the quota. */
  #withinQuota(chunk: Buffer): Buffer {
    const mark = Buffer.from(`\n[output beyond ${this.#quota} bytes was not stored]\n`);
    const room = Math.max(0, this.#quota - this.#accepted - mark.length);
    if (chunk.length <= room) return chunk;
    this.#isFull = true;
    return Buffer.concat([chunk.subarray(0, room), mark]).subarray(0, this.#quota - this.#accepted);
  }

  #take(whole: Buffer): void {
    const chunk = this.#withinQuota(whole);
    if (chunk.length === 0) return;
    this.#accepted += chunk.length;
    const copied = this.#overflow.length > 0 ? 0 : chunk.copy(this.#filling, this.#filled);
    this.#filled += copied;
    if (copied < chunk.length) this.#overflow.push(Buffer.from(chunk.subarray(copied)));
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      this.#handle ??= await this.#open();
      while (this.#filled > 0 || this.#overflow.length > 0) await this.#writeOut(this.#handle);
    } catch (error) {
      await this.#giveUp(error);
    } finally {
      this.#draining = undefined;
    }
  }

  async #open(): Promise<FileHandle> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    return open(this.#part, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  }

  async #writeOut(handle: FileHandle): Promise<void> {
    const full = this.#filling.subarray(0, this.#filled);
    const overflow = this.#overflow;
    const buffer = this.#filling;
    this.#filling = this.#spare ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#spare = undefined;
    this.#filled = 0;
    this.#overflow = [];
    failpoint("blob.before-write");
    for (const part of [full, ...overflow]) {
      this.#hash.update(part);
      await writeWhole(handle, part);
    }
    this.#spare = buffer;
  }

  /** Complete and durable under its name when it resolves, or given up. May be called twice. */
  close(): Promise<void> {
    this.#isFull = true;
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining;
    const handle = this.#handle;
    if (handle === undefined) return;
    try {
      await handle.sync();
      this.#handle = undefined;
      await handle.close();
      const name = this.#hash.digest("hex");
      failpoint("blob.before-rename");
      // Over a file of the same content: its time is new, so that nobody who collects takes it for an old one.
      await rename(this.#part, join(this.#folder, name));
      await syncFolder(this.#folder);
      this.#blob = name;
    } catch (error) {
      await this.#giveUp(error);
    }
  }

  async #giveUp(error: unknown): Promise<void> {
    this.error ??= reasonOf(error);
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close().catch(() => undefined);
    // A full disk needs the room.
    await rm(this.#part, { force: true }).catch(() => undefined);
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeWhole(handle: FileHandle, buffer: Buffer): Promise<void> {
  let offset = 0;
  while (offset < buffer.length) {
    const { bytesWritten } = await handle.write(buffer, offset);
    offset += bytesWritten;
  }
}
