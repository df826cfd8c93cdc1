/** Whether a picture is still the one that was accepted: the share of pixels that differ, and a picture of where. */
import { plainPng, readPng, type Pixels } from "./png.ts";

/** Squared, of red, green and blue: accepted pictures have at most 256 colours, and a rare one is kept as a near one. */
const ALIKE = 1_200;

export interface Difference {
  /** Of all pixels, in percent. */
  readonly percent: number;
  /** What is the same is pale, what differs is red. */
  readonly png: Buffer;
}

export function differenceOf(accepted: Buffer, taken: Buffer): Difference {
  const [before, now] = [readPng(accepted), readPng(taken)];
  const { width, height } = now;
  if (before.width !== width || before.height !== height) return { percent: 100, png: taken };
  const marked = Buffer.alloc(now.rgb.length);
  let different = 0;
  for (let at = 0; at < now.rgb.length; at += 3) {
    if (distance(before, now, at) <= ALIKE) {
      for (let of = 0; of < 3; of += 1) marked[at + of] = 192 + Math.floor((now.rgb[at + of] ?? 0) / 4);
      continue;
    }
    different += 1;
    marked[at] = 255;
  }
  return { percent: (100 * different) / (width * height), png: plainPng({ width, height, rgb: marked }) };
}

function distance(one: Pixels, other: Pixels, at: number): number {
  let sum = 0;
  for (let of = at; of < at + 3; of += 1) sum += ((one.rgb[of] ?? 0) - (other.rgb[of] ?? 0)) ** 2;
  return sum;
}
