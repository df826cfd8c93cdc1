/** Pictures as bytes: reads what Chromium writes and what is committed, 8 bits, three colours or a palette, not interlaced. */
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const TRUE_COLOUR = "0802000000";
const PALETTE = "0803000000";
export const CHANNELS = 3;

export interface Pixels {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of each, row by row. */
  readonly rgb: Buffer;
}

export function readPng(png: Buffer): Pixels {
  const { header, palette, data } = chunksOf(png);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const kind = header.toString("hex", 8);
  if (kind !== TRUE_COLOUR && kind !== PALETTE) throw new Error("this is not a PNG as Chromium or the tests write it");
  const size = kind === TRUE_COLOUR ? CHANNELS : 1;
  const bytes = unfiltered(inflateSync(data), { stride: width * size, height, size });
  if (kind === TRUE_COLOUR) return { width, height, rgb: bytes };
  const rgb = Buffer.alloc(width * height * CHANNELS);
  for (const [at, colour] of bytes.entries())
    palette.copy(rgb, at * CHANNELS, colour * CHANNELS, (colour + 1) * CHANNELS);
  return { width, height, rgb };
}

/** Every pixel as it is. */
export function plainPng({ width, height, rgb }: Pixels): Buffer {
  const rows = Buffer.alloc((width * CHANNELS + 1) * height);
  const stride = width * CHANNELS;
  for (let y = 0; y < height; y += 1) rgb.copy(rows, y * (stride + 1) + 1, y * stride, (y + 1) * stride);
  return pngOf([
    ["IHDR", headerOf(width, height, TRUE_COLOUR)],
    ["IDAT", deflateSync(rows)],
  ]);
}

/** One byte for each pixel, which names a colour. */
export function palettePng({ width, height }: Omit<Pixels, "rgb">, palette: Buffer, indexes: Buffer): Buffer {
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) indexes.copy(rows, y * (width + 1) + 1, y * width, (y + 1) * width);
  return pngOf([
    ["IHDR", headerOf(width, height, PALETTE)],
    ["PLTE", palette],
    ["IDAT", deflateSync(rows, { level: 9, memLevel: 9 })],
  ]);
}

function headerOf(width: number, height: number, kind: string): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.write(kind, 8, "hex");
  return header;
}

function pngOf(chunks: readonly (readonly [name: string, content: Buffer])[]): Buffer {
  const all = [...chunks, ["IEND", Buffer.alloc(0)] as const];
  return Buffer.concat([SIGNATURE, ...all.map(([name, content]) => chunk(name, content))]);
}

function chunk(name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, "latin1"), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

function chunksOf(png: Buffer): { header: Buffer; palette: Buffer; data: Buffer } {
  const parts: Buffer[] = [];
  let [header, palette]: [Buffer, Buffer] = [Buffer.alloc(0), Buffer.alloc(0)];
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const name = png.toString("latin1", at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + length);
    if (name === "IHDR") header = content;
    if (name === "PLTE") palette = content;
    if (name === "IDAT") parts.push(content);
    at += length + 12;
  }
  return { header, palette, data: Buffer.concat(parts) };
}

interface Rows {
  readonly stride: number;
  readonly height: number;
  /** Bytes of a pixel. */
  readonly size: number;
}

/** Each row begins with the number of its filter: a byte is stored as its difference from those left of it and above it. */
function unfiltered(raw: Buffer, { stride, height, size }: Rows): Buffer {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x;
      const left = x < size ? 0 : (out[at - size] ?? 0);
      const above = y === 0 ? 0 : (out[at - stride] ?? 0);
      const corner = x < size || y === 0 ? 0 : (out[at - stride - size] ?? 0);
      out[at] = (raw[at + y + 1] ?? 0) + predicted(filter, left, above, corner);
    }
  }
  return out;
}

function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}
