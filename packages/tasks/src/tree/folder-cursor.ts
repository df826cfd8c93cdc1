/**
 * Reaches entries of a tree through descriptors of its folders, each opened in the one above and none followed. The folders
 * on the way to the last entry stay open, so that neighbours cost one lookup.
 */
import { closeSync, constants, openSync } from "node:fs";
import { O_PATH } from "@heddle/tools/files";
import { toSystem, type RawPath } from "@heddle/tools/raw-path";
import { parentOf } from "./manifest.ts";

const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export class FolderCursor implements Disposable {
  /** Uppermost first; the first is the tree itself. */
  readonly #open: { readonly path: RawPath; readonly fd: number }[];

  constructor(root: string | Buffer) {
    this.#open = [{ path: "", fd: openSync(root, FOLDER) }];
  }

  /** On the same tree, with a current folder of its own. */
  twin(): FolderCursor {
    return new FolderCursor(`/proc/self/fd/${this.#open[0]?.fd ?? -1}/.`);
  }

  /** As `node:fs` takes it; good until the next call. Throws as the system does when a folder on the way is none. */
  at(path: RawPath): string | Buffer {
    const parent = parentOf(path);
    const name = parent === "" ? path : path.slice(parent.length + 1);
    return toSystem(`/proc/self/fd/${this.folder(parent)}/${name}`);
  }

  /** The descriptor of a folder; it only names the folder and cannot be read itself. */
  folder(path: RawPath): number {
    const open = this.#open;
    for (;;) {
      const last = open.at(-1);
      if (last === undefined) throw new Error("the cursor is closed");
      if (last.path === path) return last.fd;
      const prefix = last.path === "" ? "" : `${last.path}/`;
      if (path.startsWith(prefix)) {
        const end = path.indexOf("/", prefix.length);
        const next = end === -1 ? path : path.slice(0, end);
        const fd = openSync(toSystem(`/proc/self/fd/${last.fd}/${next.slice(prefix.length)}`), FOLDER);
        open.push({ path: next, fd });
      } else {
        open.pop();
        closeSync(last.fd);
      }
    }
  }

  /** Forgets what is open below a path: it is about to be removed or replaced. */
  leave(path: RawPath): void {
    for (let last = this.#open.at(-1); last !== undefined; last = this.#open.at(-1)) {
      if (last.path !== path && !last.path.startsWith(`${path}/`)) return;
      this.#open.pop();
      closeSync(last.fd);
    }
  }

  [Symbol.dispose](): void {
    for (const { fd } of this.#open.splice(0)) closeSync(fd);
  }
}
