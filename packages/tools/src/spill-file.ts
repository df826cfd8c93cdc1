/**
 * The whole of an output on disk, up to a quota. Opened at the first byte, created new and private. `write` returns a
 * promise once more than the high-water mark waits for the disk. A disk that refuses ends the file, not the command:
 * the reason is in `error`.
 */
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

/** Enough to keep the disk busy, little enough to stay out of the memory figures. */
const HIGH_WATER_BYTES = 1024 * 1024;

export class SpillFile {
  readonly path: string;
  readonly #quota: number;
  #accepted = 0;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
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

  write(chunk: Buffer): void | Promise<void> {
    this.#isStarted = true;
    if (this.#isFull || this.error !== undefined) return;
    this.#enqueue(this.#withinQuota(chunk));
    this.#draining ??= this.#drain();
    if (this.#pendingBytes > HIGH_WATER_BYTES) return this.#draining;
  }

  /** The mark counts toward the quota: a full file is never larger than promised. */
  #withinQuota(chunk: Buffer): Buffer {
    const mark = Buffer.from(`\n[output beyond ${this.#quota} bytes was not stored]\n`);
    const room = Math.max(0, this.#quota - this.#accepted - mark.length);
    if (chunk.length <= room) return chunk;
    this.#isFull = true;
    return Buffer.concat([chunk.subarray(0, room), mark]).subarray(0, this.#quota - this.#accepted);
  }

  #enqueue(chunk: Buffer): void {
    this.#accepted += chunk.length;
    this.#pending.push(chunk);
    this.#pendingBytes += chunk.length;
  }

  async #drain(): Promise<void> {
    try {
      this.#handle ??= await open(
        this.path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
        0o600,
      );
      while (this.#pending.length > 0) {
        const batch = this.#pending;
        this.#pending = [];
        // writev may write less than asked; the handle's own loop is per buffer.
        for (const buffer of batch) await writeWhole(this.#handle, buffer);
        this.#pendingBytes = this.#pending.reduce((sum, buffer) => sum + buffer.length, 0);
      }
    } catch (error) {
      this.error = error instanceof Error ? error.message : String(error);
      this.#pending = [];
      this.#pendingBytes = 0;
    } finally {
      this.#draining = undefined;
    }
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
