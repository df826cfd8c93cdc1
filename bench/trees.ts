/** What a verdict rests on: keeping a large tree, reading it again, and freezing some changes of it, against a bare walk. */
import { lstatSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freezeWork } from "@heddle/tasks/freeze-work";
import { keepTree, readKeptTree } from "@heddle/tasks/keep-tree";
import { fileOf, fill } from "./rooms.ts";

const FILES = 50_000;
const CHANGED = 1000;
const ROUNDS = 5;

interface TreeFigures {
  readonly keepMs: number[];
  readonly readMs: number[];
  readonly freezeMs: number[];
  /** To one listing of every folder and one stat of every file, in this process. */
  readonly freezeRatios: number[];
}

export async function measureTrees(root: string): Promise<TreeFigures> {
  const [workspace, dir] = [join(root, "tree-workspace"), join(root, "tree-rooms")];
  const { signal } = new AbortController();
  await fill(workspace, FILES);
  const figures: TreeFigures = { keepMs: [], readMs: [], freezeMs: [], freezeRatios: [] };
  const into = join(dir, "base");
  figures.keepMs.push(await timed(() => keepTree(workspace, { into, skip: [], signal })));
  for (let round = 0; round < ROUNDS; round += 1) {
    figures.readMs.push(await timed(() => readKeptTree(into)));
    const base = await readKeptTree(into);
    if (base === undefined) throw new Error("the kept tree is not there");
    for (let index = 0; index < CHANGED; index += 1) {
      await writeFile(join(workspace, fileOf(index)), `export const value = "${round}-${index}";\n`);
    }
    const walkMs = await timed(async () => walk(workspace));
    const work = join(dir, `work-${round}`);
    const freezeMs = await timed(() => freezeWork(workspace, base, { into: work, skip: [], signal }));
    figures.freezeMs.push(freezeMs);
    figures.freezeRatios.push(freezeMs / walkMs);
  }
  return figures;
}

function walk(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (lstatSync(path).isDirectory()) walk(path);
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
