/**
 * The mounts of a process as the kernel lists them: parsing, visibility, and the flags that a remount must repeat
 * because they are locked in a user namespace.
 */

export interface Mount {
  readonly id: number;
  readonly parent: number;
  readonly path: string;
  readonly options: readonly string[];
  readonly type: string;
}

export function parseMountinfo(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    const [id, parent, , , path, options] = fields;
    const separator = fields.indexOf("-", 6);
    if (id === undefined || parent === undefined || path === undefined || options === undefined) continue;
    mounts.push({
      id: Number(id),
      parent: Number(parent),
      path: unescapeOctal(path),
      options: options.split(","),
      type: fields[separator + 1] ?? "",
    });
  }
  return mounts;
}

/** The kernel writes space, tab, newline and backslash as octal, and passes other bytes through. */
function unescapeOctal(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** Mounts that are reachable by their path, not hidden by a later mount. */
export function visibleMounts(mounts: readonly Mount[]): Mount[] {
  return mounts.filter((mount) => mountAt(mounts, mount.path)?.id === mount.id);
}

/** The mount a path is on, found as the kernel does: from the root, through each mount on the way. */
export function mountAt(mounts: readonly Mount[], path: string): Mount | undefined {
  const { root, below } = treeOf(mounts);
  let current = root;
  for (let next = current; next !== undefined;) {
    current = next;
    next = below.get(current.id)?.find((mount) => isWithin(path, mount.path));
  }
  return current;
}

interface MountTree {
  readonly root: Mount | undefined;
  /** By the id of their parent mount; the shortest path first, as the kernel meets them. */
  readonly below: ReadonlyMap<number, readonly Mount[]>;
}

/** Each list is queried for many paths. */
const trees = new WeakMap<readonly Mount[], MountTree>();

function treeOf(mounts: readonly Mount[]): MountTree {
  const known = trees.get(mounts);
  if (known !== undefined) return known;
  const ids = new Set(mounts.map((mount) => mount.id));
  const below = new Map<number, Mount[]>();
  for (const mount of mounts) {
    if (mount.parent === mount.id) continue;
    const siblings = below.get(mount.parent);
    if (siblings === undefined) below.set(mount.parent, [mount]);
    else siblings.push(mount);
  }
  for (const siblings of below.values()) siblings.sort((a, b) => a.path.length - b.path.length);
  const atRoot = mounts.filter((mount) => mount.path === "/");
  const tree = { root: atRoot.find((mount) => !ids.has(mount.parent)) ?? atRoot[0], below };
  trees.set(mounts, tree);
  return tree;
}

const FLAGS: ReadonlySet<string> = new Set([
  "ro",
  "nosuid",
  "nodev",
  "noexec",
  "noatime",
  "nodiratime",
  "relatime",
  "nosymfollow",
]);

/** A remount in a user namespace must repeat locked flags. */
export function mountFlags(mount: Mount | undefined): string[] {
  return (mount?.options ?? []).filter((option) => FLAGS.has(option));
}

/** By components, not by string prefix. */
export function isWithin(path: string, root: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}

export function isBelow(path: string, root: string): boolean {
  return path !== root && isWithin(path, root);
}
