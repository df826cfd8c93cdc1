/**
 * The output of a command in bounded memory: the first and the last bytes are kept, and the whole goes to a file that
 * is named by its hash, up to a quota. Text is cut between characters. `push` returns a promise when the file is behind: the reader of the
 * pipe waits for it. Everything goes through the filter first. What is kept and stored goes through one that is never
 * flushed early, so that it does not depend on when it was read.
 */
import { SpillFile } from "./spill-file.ts";
import { HeadTail } from "./head-tail.ts";
import { LiveText } from "./live-text.ts";

/** Together with the mark between them at most 32 kB: one loud command must not push the task out of the context. */
const DEFAULT_HEAD_BYTES = 12 * 1024;
const DEFAULT_TAIL_BYTES = 19 * 1024;
const FILTERED_BYTES = 4 * 1024;
/** A whole build log fits; a runaway loop does not fill the disk. */
const DEFAULT_SPILL_QUOTA_BYTES = 64 * 1024 * 1024;

/** Receives the output in pieces; it may hold back what it cannot decide yet. */
export interface OutputFilter {
  push(text: string): string;
  /** What is held back only because a word may continue. */
  flush(): string;
  /** A copy in the same state. */
  fork(): OutputFilter;
  end(): string;
}

export interface CappedOutputOptions {
  readonly headBytes?: number;
  readonly tailBytes?: number;
  /** Gets the whole output, under its SHA-256, only when it does not fit. */
  readonly spillFolder?: string;
  readonly spillQuotaBytes?: number;
  readonly filter?: OutputFilter | undefined;
  /** Live text; of a flood only a part is sent, with a mark. */
  readonly onText?: (delta: string) => void;
}

export interface OutputSnapshot {
  readonly text: string;
  readonly totalBytes: number;
  readonly truncatedBytes: number;
  /** The SHA-256 of the whole, its name in the folder; absent until it is closed, where it fits, and where the disk refused. */
  readonly blob?: string;
  /** Why the whole was not kept. */
  readonly blobError?: string;
}

export class CappedOutput {
  readonly #whole: HeadTail;
  #sinceTake: HeadTail;
  readonly #newWindow: () => HeadTail;
  readonly #spill: SpillFile | undefined;
  readonly #live: LiveText | undefined;
  readonly #filter: OutputFilter | undefined;
  /** For what is kept and stored, once something was flushed early. */
  #keptFilter: OutputFilter | undefined;
  #isClosed = false;
  #bytes = Buffer.alloc(0);

  constructor(options: CappedOutputOptions = {}) {
    const headBytes = options.headBytes ?? DEFAULT_HEAD_BYTES;
    const tailBytes = options.tailBytes ?? DEFAULT_TAIL_BYTES;
    this.#newWindow = () => new HeadTail(headBytes, tailBytes);
    this.#whole = this.#newWindow();
    this.#sinceTake = this.#newWindow();
    this.#spill =
      options.spillFolder === undefined
        ? undefined
        : new SpillFile(options.spillFolder, options.spillQuotaBytes ?? DEFAULT_SPILL_QUOTA_BYTES);
    this.#filter = options.filter;
    this.#live = options.onText === undefined ? undefined : new LiveText(options.onText);
  }

  /** Chunks after `close` are dropped: the result has been given. */
  push(chunk: Buffer): void | Promise<void> {
    if (this.#isClosed || chunk.length === 0) return;
    if (this.#filter === undefined) {
      this.#tell(chunk);
      return this.#keep(chunk);
    }
    let behind: void | Promise<void> = undefined;
    for (let from = 0; from < chunk.length; from += FILTERED_BYTES) {
      // One character per byte, so that binary output stays unchanged.
      const text = chunk.toString("latin1", from, from + FILTERED_BYTES);
      const filtered = this.#bytesOf(this.#filter.push(text));
      this.#tell(filtered);
      behind = this.#keep(this.#keptFilter === undefined ? filtered : this.#bytesOf(this.#keptFilter.push(text)));
    }
    return behind;
  }

  /** Reused memory, valid until the next call, so that a flood makes no garbage. */
  #bytesOf(text: string): Buffer {
    if (this.#bytes.length < text.length) this.#bytes = Buffer.allocUnsafeSlow(2 * text.length);
    return this.#bytes.subarray(0, this.#bytes.write(text, "latin1"));
  }

  #tell(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#live?.push(chunk);
    this.#sinceTake.push(chunk);
  }

  #keep(chunk: Buffer): void | Promise<void> {
    if (chunk.length === 0) return;
    const before = this.#spill === undefined || this.#spill.isStarted ? undefined : this.#whole.bytesIfWhole();
    this.#whole.push(chunk);
    if (this.#spill === undefined || this.#whole.truncatedBytes === 0) return;
    if (before !== undefined && before.length > 0) {
      // The file starts with what memory held until now.
      return settleBoth(this.#spill.write(before), this.#spill.write(chunk));
    }
    return this.#spill.write(chunk);
  }

  snapshot(): OutputSnapshot {
    const { text, truncatedBytes } = this.#whole.read();
    // Includes the prompt at which a running command may wait.
    const last = this.#isClosed ? "" : ((this.#keptFilter ?? this.#filter)?.fork().flush() ?? "");
    return {
      text: last === "" ? text : text + Buffer.from(last, "latin1").toString("utf8"),
      totalBytes: this.#whole.totalBytes,
      truncatedBytes,
      ...(this.#spill?.blob !== undefined && { blob: this.#spill.blob }),
      ...(this.#spill?.error !== undefined && { blobError: this.#spill.error }),
    };
  }

  /** Output since the last take, capped the same way. An incomplete character waits for the next. */
  take(): { text: string; truncatedBytes: number } {
    // A prompt without a line end must be visible.
    if (!this.#isClosed && this.#filter !== undefined) {
      const before = this.#keptFilter ?? this.#filter.fork();
      const early = this.#filter.flush();
      if (early !== "") this.#keptFilter = before;
      this.#tell(Buffer.from(early, "latin1"));
    }
    const { text, truncatedBytes, rest } = this.#sinceTake.takeText(this.#isClosed);
    this.#sinceTake = this.#newWindow();
    this.#sinceTake.push(rest);
    return { text, truncatedBytes };
  }

  /** Waits until the file is complete. May be called twice. */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      if (this.#filter !== undefined) {
        const rest = Buffer.from(this.#filter.end(), "latin1");
        this.#tell(rest);
        await this.#keep(this.#keptFilter === undefined ? rest : Buffer.from(this.#keptFilter.end(), "latin1"));
      }
      this.#live?.end();
    }
    await this.#spill?.close();
  }
}

function settleBoth(first: void | Promise<void>, second: void | Promise<void>): void | Promise<void> {
  if (first === undefined) return second;
  if (second === undefined) return first;
  return Promise.all([first, second]).then(() => undefined);
}
