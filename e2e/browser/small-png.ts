/**
 * A screenshot with at most 256 colours, which is half of its size and looks the same: a page is drawn in few colours, and
 * the rare ones between them, at the edges of letters, become the nearest that are left. Reads what Chromium writes:
 * 8 bits for each of three colours, not interlaced.
 */
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE_BYTES = 8;
const CHANNELS = 3;
const MAX_COLOURS = 256;
/** Squared: less than three of 256 in each of red, green and blue; surfaces of the page differ by more. */
const ALIKE = 24;

export function smallPng(png: Buffer): Buffer {
  const { header, data } = chunksOf(png);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (header.toString("hex", 8) !== "0802000000") throw new Error("this is not a PNG as Chromium writes it");
  const pixels = unfiltered(inflateSync(data), width * CHANNELS, height);
  const colours = commonColours(pixels);
  const rows = Buffer.alloc((width + 1) * height);
  const nearest = new Map(colours.map((colour, at) => [colour, at]));
  for (let at = 0; at < width * height; at += 1) {
    const colour = pixels.readUIntBE(at * CHANNELS, CHANNELS);
    const index = nearest.get(colour) ?? nearestOf(colour, colours);
    nearest.set(colour, index);
    rows[at + Math.floor(at / width) + 1] = index;
  }
  const palette = Buffer.alloc(colours.length * CHANNELS);
  for (const [at, colour] of colours.entries()) palette.writeUIntBE(colour, at * CHANNELS, CHANNELS);
  const small = Buffer.from(header);
  small[9] = 3;
  return Buffer.concat([
    png.subarray(0, SIGNATURE_BYTES),
    chunk("IHDR", small),
    chunk("PLTE", palette),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunksOf(png: Buffer): { header: Buffer; data: Buffer } {
  const parts: Buffer[] = [];
  let header: Buffer = Buffer.alloc(0);
  for (let at = SIGNATURE_BYTES; at < png.length;) {
    const length = png.readUInt32BE(at);
    const name = png.toString("latin1", at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + length);
    if (name === "IHDR") header = content;
    if (name === "IDAT") parts.push(content);
    at += length + 12;
  }
  return { header, data: Buffer.concat(parts) };
}

/** Each row begins with the number of its filter: a byte is stored as its difference from those left of it and above it. */
function unfiltered(raw: Buffer, stride: number, height: number): Buffer {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x;
      const left = x < CHANNELS ? 0 : (out[at - CHANNELS] ?? 0);
      const above = y === 0 ? 0 : (out[at - stride] ?? 0);
      const corner = x < CHANNELS || y === 0 ? 0 : (out[at - stride - CHANNELS] ?? 0);
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

/** The most frequent first. */
function commonColours(pixels: Buffer): readonly number[] {
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += CHANNELS) {
    const colour = pixels.readUIntBE(at, CHANNELS);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const chosen: number[] = [];
  // One that is hardly another than one that is there takes no place from a rare one that means something.
  for (const [colour] of [...counts].toSorted(([, a], [, b]) => b - a)) {
    if (chosen.length < MAX_COLOURS && chosen.every((other) => distance(colour, other) > ALIKE)) chosen.push(colour);
  }
  return chosen;
}

function nearestOf(colour: number, colours: readonly number[]): number {
  const distances = colours.map((other) => distance(colour, other));
  return distances.indexOf(Math.min(...distances));
}

/** Squared, of red, green and blue. */
function distance(one: number, other: number): number {
  return [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
}

function chunk(name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, "latin1"), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
