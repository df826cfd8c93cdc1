/**
 * Which threads are being purged: a file each in `purging`, made before the first body goes and removed after the last. A
 * crash leaves it, and whoever serves or deletes next goes on from there.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makePrivateFolder, sizeOf, syncFile } from "../home.ts";
import type { Forgotten } from "./purge.ts";

export function notePurge(folder: string, { stream, before }: Forgotten): void {
  makePrivateFolder(folder);
  writeFileSync(fileOf(folder, stream), `${before}\n`, { mode: 0o600 });
  syncFile(fileOf(folder, stream));
}

export function readPurges(folder: string): readonly Forgotten[] {
  if (sizeOf(folder) < 0) return [];
  return readdirSync(folder).map((name) => {
    // Another process may have finished it; a note that a crash cut says nothing.
    const text = sizeOf(join(folder, name)) > 0 ? readFileSync(join(folder, name), "utf8") : "0";
    return { stream: decodeURIComponent(name), before: Number.parseInt(text, 10) || 0 };
  });
}

export function clearPurge(folder: string, stream: string): void {
  rmSync(fileOf(folder, stream), { force: true });
}

function fileOf(folder: string, stream: string): string {
  return join(folder, encodeURIComponent(stream));
}
