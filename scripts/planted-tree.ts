/** A small tree with the shape of this one, into which tests plant what the checks must find. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export type Files = Readonly<Record<string, string>>;

export interface PlantedTree extends Disposable {
  readonly root: string;
}

export function plantTree(files: Files): PlantedTree {
  const root = mkdtempSync(join(tmpdir(), "planted-tree-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
}
