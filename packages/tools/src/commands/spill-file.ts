/**
 * A whole output on disk, up to a quota. Created new and private at the first byte. Two fixed buffers: one is filled
 * while the other is written; `write` returns a promise when the disk is behind. A disk error ends the file, not the
 * command: the reason is in `error`.
 */
import { reasonOf } from "@heddle/protocol";
import { constants } from "node:fs";
import { mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

/** Enough to keep the disk busy. */
const BUFFER_BYTES = 1024 * 1024;

export class SpillFile {
  readonly path: string;
  readonly #quota: number;
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
  error: string | undefined;

  constructor(path: string, quotaBytes: number) {
    this.path = path;
    this.#quota = quotaBytes;
  }

  get isStarted(): boolean {
    return this.#isStarted;
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
      this.error = reasonOf(error);
    } finally {
      this.#draining = undefined;
    }
  }

  async #open(): Promise<FileHandle> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    return open(this.path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  }

  async #writeOut(handle: FileHandle): Promise<void> {
    const full = this.#filling.subarray(0, this.#filled);
    const overflow = this.#overflow;
    const buffer = this.#filling;
    this.#filling = this.#spare ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#spare = undefined;
    this.#filled = 0;
    this.#overflow = [];
    for (const part of [full, ...overflow]) await writeWhole(handle, part);
    this.#spare = buffer;
  }

  async close(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining;
    const handle = this.#handle;
    this.#handle = undefined;
    this.#isFull = true;
    await handle?.close();
  }
}

async function writeWhole(handle: FileHandle, buffer: Buffer): Promise<void> {
  let offset = 0;
  while (offset < buffer.length) {
    const { bytesWritten } = await handle.write(buffer, offset);
    offset += bytesWritten;
  }
}
