/**
 * A baseline with some changes laid over it, as one tree of names. Links are resolved over the names alone: no path of the
 * host is ever followed, and a link that leads out of the tree is told from one that leads nowhere.
 */
import { toRaw } from "@heddle/tools/raw-path";
import { parentOf, type Change, type Manifest, type RawPath, type TreeEntry } from "./manifest.ts";

/** As many as the kernel follows. */
const MAX_LINKS = 40;

export type Resolved =
  | { readonly kind: "found"; readonly path: RawPath; readonly entry: TreeEntry; readonly links: readonly RawPath[] }
  /** `path`: what was looked for last. */
  | { readonly kind: "missing"; readonly path: RawPath; readonly links: readonly RawPath[] }
  | { readonly kind: "outside"; readonly links: readonly RawPath[] }
  | { readonly kind: "loop"; readonly links: readonly RawPath[] };

export interface UnionTree {
  get(path: RawPath): TreeEntry | undefined;
  /** Names in a folder, sorted. */
  names(folder: RawPath): readonly string[];
  /** Where a path leads; `keepsLast` stays on a link that is its last part. */
  resolve(path: RawPath, options?: { readonly keepsLast?: boolean }): Resolved;
}

const ROOT: TreeEntry = { kind: "folder", mode: 0o755, size: 0, mtimeNs: 0n, sha256: "" };

/** `changes` as `completePicks` gives them; `root`: what absolute links are measured against. */
export function unionTree(base: Manifest, changes: readonly Change[], root: string): UnionTree {
  const over = new Map(changes.map((change) => [change.path, change.now]));
  const get = (path: RawPath): TreeEntry | undefined =>
    path === "" ? ROOT : over.has(path) ? over.get(path) : base.get(path);
  let children: Map<RawPath, string[]> | undefined;
  const names = (folder: RawPath): readonly string[] => (children ??= childrenOf(base, over)).get(folder) ?? [];
  return {
    get,
    names,
    resolve: (path, { keepsLast = false } = {}) => resolve(path, { get, root: toRaw(root), keepsLast }),
  };
}

function childrenOf(base: Manifest, over: ReadonlyMap<RawPath, TreeEntry | undefined>): Map<RawPath, string[]> {
  const children = new Map<RawPath, string[]>();
  const add = (path: RawPath): void => {
    const parent = parentOf(path);
    const name = parent === "" ? path : path.slice(parent.length + 1);
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [name]);
    else siblings.push(name);
  };
  for (const path of base.keys()) if (!over.has(path)) add(path);
  for (const [path, entry] of over) if (entry !== undefined) add(path);
  for (const siblings of children.values()) siblings.sort();
  return children;
}

function resolve(
  path: RawPath,
  options: {
    readonly get: (path: RawPath) => TreeEntry | undefined;
    readonly root: RawPath;
    readonly keepsLast: boolean;
  },
): Resolved {
  const { get, root, keepsLast } = options;
  const links: RawPath[] = [];
  const pending = path.split("/").reverse();
  let at: RawPath = "";
  let entry = ROOT;
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    if (part === "" || part === ".") continue;
    if (entry.kind !== "folder") return { kind: "missing", path: at, links };
    if (part === "..") {
      if (at === "") return { kind: "outside", links };
      at = parentOf(at);
      entry = get(at) ?? ROOT;
      continue;
    }
    const next: RawPath = at === "" ? part : `${at}/${part}`;
    const found = get(next);
    if (found === undefined) return { kind: "missing", path: [next, ...pending.reverse()].join("/"), links };
    const isLast = pending.every((rest) => rest === "" || rest === ".");
    if (found.kind !== "link" || (keepsLast && isLast)) {
      [at, entry] = [next, found];
      continue;
    }
    links.push(next);
    if (links.length > MAX_LINKS) return { kind: "loop", links };
    const target = found.target ?? "";
    if (target.startsWith("/")) {
      if (target !== root && !target.startsWith(`${root}/`)) return { kind: "outside", links };
      [at, entry] = ["", ROOT];
      pending.push(...target.slice(root.length).split("/").reverse());
    } else {
      pending.push(...target.split("/").reverse());
    }
  }
  return { kind: "found", path: at, entry, links };
}
