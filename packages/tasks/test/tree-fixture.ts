/** A workspace in a temporary folder, with a folder for what is kept of it. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freezeWork, type FreezeOptions } from "../src/tree/freeze-work.ts";
import { keepTree, type KeepOptions } from "../src/tree/keep-tree.ts";
import type { Change, FrozenWork, KeptTree } from "../src/tree/manifest.ts";
import { removeTree } from "../src/tree/remove-tree.ts";
import { openRoomFiles, type RoomFiles } from "../src/tree/room-files.ts";

const { signal } = new AbortController();

export class TreeFixture implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), "heddle-trees-"));
  readonly workspace = join(this.path, "workspace");
  readonly dir = join(this.path, "rooms", "task");
  #rounds = 0;

  constructor(files: Readonly<Record<string, string>>) {
    mkdirSync(this.workspace);
    for (const [name, content] of Object.entries(files)) this.write(name, content);
  }

  at(name: string): string {
    return join(this.workspace, name);
  }

  write(name: string, content: string): void {
    mkdirSync(dirname(this.at(name)), { recursive: true });
    writeFileSync(this.at(name), content);
  }

  keep(options: Partial<KeepOptions> = {}): Promise<KeptTree> {
    return keepTree(this.workspace, { into: join(this.dir, "base"), skip: [], signal, ...options });
  }

  freeze(
    base: KeptTree,
    wanted?: (path: string) => boolean,
    options: Partial<FreezeOptions> = {},
  ): Promise<FrozenWork> {
    const into = join(this.dir, `work-${(this.#rounds += 1)}`);
    const some = wanted === undefined ? {} : { wanted };
    return freezeWork(this.workspace, base, { into, skip: [], signal, ...some, ...options });
  }

  async room(base: KeptTree, pick: (change: Change) => boolean = () => true): Promise<RoomFiles> {
    const frozen = await this.freeze(base);
    return openRoomFiles(base, { frozen, picked: frozen.changes.filter(pick) }, { root: this.workspace, signal });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return removeTree(this.path, signal);
  }
}

export function brief(changes: readonly Change[]): string[] {
  return changes.map(({ how, path }) => `${how} ${path}`);
}
