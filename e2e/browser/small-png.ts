/**
 * A screenshot with at most 256 colours, which is half of its size and looks the same: a page is drawn in few colours, and
 * the rare ones between them, at the edges of letters, become the nearest that are left.
 */
import { CHANNELS, palettePng, readPng } from "./png.ts";

const MAX_COLOURS = 256;
/** Squared: less than three of 256 in each of red, green and blue; surfaces of the page differ by more. */
const ALIKE = 24;

export function smallPng(png: Buffer): Buffer {
  const { width, height, rgb } = readPng(png);
  const colours = commonColours(rgb);
  const indexes = Buffer.alloc(width * height);
  const nearest = new Map(colours.map((colour, at) => [colour, at]));
  for (let at = 0; at < indexes.length; at += 1) {
    const colour = rgb.readUIntBE(at * CHANNELS, CHANNELS);
    const index = nearest.get(colour) ?? nearestOf(colour, colours);
    nearest.set(colour, index);
    indexes[at] = index;
  }
  const palette = Buffer.alloc(colours.length * CHANNELS);
  for (const [at, colour] of colours.entries()) palette.writeUIntBE(colour, at * CHANNELS, CHANNELS);
  return palettePng({ width, height }, palette, indexes);
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
