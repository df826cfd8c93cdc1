/**
 * A monospace font for pictures and measurements, from the packages of the tree: the Chromium there brings none, and the
 * page's own list of fonts names this one. Its package has it as WOFF; fonts of a system are plain, so it is unpacked.
 */
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { inflateSync } from "node:zlib";

const FILES = ["dejavu-mono-latin-400-normal.woff", "dejavu-mono-latin-700-normal.woff"] as const;
const HEADER_BYTES = 44;
const ENTRY_BYTES = 20;
const OUT_HEADER_BYTES = 12;
const OUT_ENTRY_BYTES = 16;

export async function writeFonts(folder: string): Promise<void> {
  const { resolve } = createRequire(import.meta.url);
  for (const name of FILES) {
    const woff = await readFile(resolve(`@fontsource/dejavu-mono/files/${name}`));
    await writeFile(path.join(folder, name.replace(".woff", ".ttf")), unpackWoff(woff));
  }
}

/** The same tables in the same order, each as it was before it was compressed. */
function unpackWoff(woff: Buffer): Buffer {
  if (woff.toString("latin1", 0, 4) !== "wOFF") throw new Error("this is not a font in WOFF");
  const count = woff.readUInt16BE(12);
  const out = Buffer.alloc(woff.readUInt32BE(16));
  woff.copy(out, 0, 4, 8);
  out.writeUInt16BE(count, 4);
  const power = 2 ** Math.floor(Math.log2(count));
  out.writeUInt16BE(power * OUT_ENTRY_BYTES, 6);
  out.writeUInt16BE(Math.log2(power), 8);
  out.writeUInt16BE((count - power) * OUT_ENTRY_BYTES, 10);
  let at = OUT_HEADER_BYTES + count * OUT_ENTRY_BYTES;
  for (let index = 0; index < count; index += 1) {
    const from = HEADER_BYTES + index * ENTRY_BYTES;
    const [offset, packed, length] = [4, 8, 12].map((skip) => woff.readUInt32BE(from + skip)) as [
      number,
      number,
      number,
    ];
    const table = woff.subarray(offset, offset + packed);
    (packed < length ? inflateSync(table) : table).copy(out, at);
    const entry = OUT_HEADER_BYTES + index * OUT_ENTRY_BYTES;
    woff.copy(out, entry, from, from + 4);
    woff.copy(out, entry + 4, from + 16, from + 20);
    out.writeUInt32BE(at, entry + 8);
    out.writeUInt32BE(length, entry + 12);
    at += Math.ceil(length / 4) * 4;
  }
  return out;
}
