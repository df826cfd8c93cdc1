/**
 * The first `headBytes` and the last `tailBytes` of a byte stream in two fixed buffers. As text, it leaves out
 * characters that were cut in half and counts their bytes as left out.
 */

const EMPTY = Buffer.alloc(0);

export class HeadTail {
  readonly #head: Buffer[] = [];
  #headLength = 0;
  readonly #headBytes: number;
  readonly #tailBytes: number;
  /** A ring, allocated when the head is full, because most commands print little. */
  #ring: Buffer = EMPTY;
  #ringEnd = 0;
  #afterHead = 0;

  constructor(headBytes: number, tailBytes: number) {
    this.#headBytes = headBytes;
    this.#tailBytes = tailBytes;
  }

  get totalBytes(): number {
    return this.#headLength + this.#afterHead;
  }

  get truncatedBytes(): number {
    return Math.max(0, this.#afterHead - this.#tailBytes);
  }

  push(chunk: Buffer): void {
    const room = this.#headBytes - this.#headLength;
    if (room > 0) {
      const part = Buffer.from(chunk.subarray(0, room));
      this.#head.push(part);
      this.#headLength += part.length;
    }
    const rest = room > 0 ? chunk.subarray(room) : chunk;
    if (rest.length > 0) this.#pushTail(rest);
  }

  #pushTail(chunk: Buffer): void {
    this.#afterHead += chunk.length;
    if (this.#tailBytes === 0) return;
    if (this.#ring.length === 0) this.#ring = Buffer.alloc(this.#tailBytes);
    const last = chunk.subarray(Math.max(0, chunk.length - this.#tailBytes));
    const toEnd = Math.min(last.length, this.#tailBytes - this.#ringEnd);
    last.copy(this.#ring, this.#ringEnd, 0, toEnd);
    last.copy(this.#ring, 0, toEnd);
    this.#ringEnd = (this.#ringEnd + last.length) % this.#tailBytes;
  }

  #headBuffer(): Buffer {
    return Buffer.concat(this.#head);
  }

  #tailBuffer(): Buffer {
    if (this.#afterHead < this.#tailBytes) return this.#ring.subarray(0, this.#afterHead);
    return Buffer.concat([this.#ring.subarray(this.#ringEnd), this.#ring.subarray(0, this.#ringEnd)]);
  }

  /** All bytes, as long as nothing has been left out yet. */
  bytesIfWhole(): Buffer | undefined {
    return this.truncatedBytes === 0 ? Buffer.concat([this.#headBuffer(), this.#tailBuffer()]) : undefined;
  }

  read(): { text: string; truncatedBytes: number } {
    const { text, truncatedBytes } = this.takeText(true);
    return { text, truncatedBytes };
  }

  /** `rest` is the incomplete character at the end, unless the stream is final. */
  takeText(isFinal: boolean): { text: string; truncatedBytes: number; rest: Buffer } {
    const whole = this.bytesIfWhole();
    if (whole !== undefined) {
      const cut = isFinal ? 0 : incompleteSuffix(whole);
      const kept = whole.subarray(0, whole.length - cut);
      return { text: kept.toString("utf8"), truncatedBytes: 0, rest: Buffer.from(whole.subarray(kept.length)) };
    }
    const fullHead = this.#headBuffer();
    const head = fullHead.subarray(0, fullHead.length - incompleteSuffix(fullHead));
    const fullTail = this.#tailBuffer();
    const tail = fullTail.subarray(strayPrefix(fullTail));
    const cut = isFinal ? 0 : incompleteSuffix(tail);
    const keptTail = tail.subarray(0, tail.length - cut);
    const truncatedBytes = this.totalBytes - head.length - tail.length;
    const mark = `\n[... ${truncatedBytes} bytes left out ...]\n`;
    return {
      text: head.toString("utf8") + mark + keptTail.toString("utf8"),
      truncatedBytes,
      rest: Buffer.from(tail.subarray(keptTail.length)),
    };
  }
}

/** Bytes at the end of an unfinished UTF-8 character. */
function incompleteSuffix(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    return sequenceLength(byte) > back ? back : 0;
  }
  return 0;
}

/** Bytes at the start that continue a cut character. */
function strayPrefix(bytes: Buffer): number {
  let count = 0;
  while (count < 3 && count < bytes.length && ((bytes[count] ?? 0) & 0b1100_0000) === 0b1000_0000) count += 1;
  return count;
}

function sequenceLength(lead: number): number {
  if (lead >= 0b1111_0000 && lead <= 0b1111_0100) return 4;
  if (lead >= 0b1110_0000 && lead < 0b1111_0000) return 3;
  if (lead >= 0b1100_0010 && lead < 0b1110_0000) return 2;
  return 1;
}
