/**
 * What the file system looks like inside, as an ordered list of steps for both back-ends. The base is the host's tree,
 * read-only, or an empty folder where only some of it may be read; each step puts something over a path; sources are the
 * host's view. Deeper paths come later: a write root inside a masked folder is visible, and a masked folder inside a
 * write root is hidden.
 */
import { dirname } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { isBelow, isWithin } from "./mountinfo.ts";

export type Step =
  | { readonly kind: "bind"; readonly source: string; readonly path: string; readonly isWritable: boolean }
  /** An empty read-only folder; at `/` it takes the place of the host's tree. */
  | { readonly kind: "empty"; readonly path: string }
  /** The tree of a room, made of layers; writable. */
  | { readonly kind: "overlay"; readonly path: string; readonly lowerCount: number }
  /** Made in a folder of the sandbox's own, because the host's is not there. */
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "dev"; readonly path: "/dev" }
  | { readonly kind: "proc"; readonly path: "/proc" };

export interface MaskedPath {
  readonly path: string;
  readonly kind: "directory" | "file" | "socket";
}

/** All that may be read besides the write roots. */
export interface Readable {
  readonly roots: readonly string[];
  /** Links of the host by which the roots are known under other names, such as /bin. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
}

/** What a room shows at its workspace in place of the host's folder. */
export type RoomTree =
  /** The uppermost layer first, below an upper one for writes. */
  | { readonly kind: "overlay"; readonly lower: readonly string[]; readonly upper: RoomUpper }
  | { readonly kind: "folder"; readonly source: string };

export type RoomUpper =
  | { readonly kind: "memory"; readonly maxBytes: number }
  /** Two folders of one file system. */
  | { readonly kind: "disk"; readonly upper: string; readonly work: string };

/** All paths are real: none contains a symbolic link. */
export interface LayoutInput {
  /** Shown in place of the host's folder at the workspace. */
  readonly tree?: RoomTree | undefined;
  readonly workspace: string;
  readonly writeRoots: readonly string[];
  /** Absent: everything may be read. */
  readonly readable?: Readable | undefined;
  readonly masked: readonly MaskedPath[];
  readonly protectedPaths: readonly string[];
  /** Mounted over themselves, so that they cannot be moved away. */
  readonly gitFolders: readonly string[];
  readonly sockets: readonly string[];
  readonly socketFolders: readonly string[];
  /** Folders that stay visible below a covered one: programs, the user's home. */
  readonly visible: readonly { readonly source: string; readonly path: string }[];
  /** Folders of host sockets such as /run. */
  readonly runFolders: readonly string[];
  readonly temporary: readonly { readonly path: string; readonly source: string }[];
  readonly emptyFile: string;
  readonly deadSocket: string;
}

export interface Layout {
  readonly steps: readonly Step[];
  readonly writeRoots: readonly string[];
  /** Sockets with a cover each. The cover is removed with the socket, so one that is made again there has none. */
  readonly coveredSockets: ReadonlySet<string>;
  /** Everything that may be writable inside; the finished mounts are checked against it. */
  readonly writable: readonly string[];
}

/** Each is a mount; a thousand take about a second. */
export const MAX_SOCKET_COVERS = 4096;

/** The nearest folder around the path is one of `covers`. */
function isCloser(
  path: string,
  { covers, than }: { readonly covers: readonly string[]; readonly than: readonly string[] },
): boolean {
  const nearest = (candidates: readonly string[]): number =>
    Math.max(-1, ...candidates.filter((candidate) => isBelow(path, candidate)).map((candidate) => candidate.length));
  return nearest(covers) > nearest(than);
}

export function planLayout(input: LayoutInput): Layout {
  const { writeRoots: roots, readable } = input;
  const temporary = input.temporary.filter(({ path }) => !roots.some((root) => isWithin(path, root)));
  const maskedFolders = input.masked.filter(({ kind }) => kind === "directory").map(({ path }) => path);
  const base = readable === undefined ? [] : ["/"];
  const allRun = input.runFolders.filter((path) => !roots.some((root) => isWithin(path, root)));
  const covers = [...base, ...temporary.map(({ path }) => path), ...allRun, "/dev", ...maskedFolders];
  const shown = [...seen(input), ...roots.map((root) => ({ source: root, path: root }))].filter(
    ({ path }) => !covers.includes(path),
  );

  const isHidden = (path: string): boolean => isCloser(path, { covers, than: shown.map((entry) => entry.path) });
  const runFolders = readable === undefined ? allRun : allRun.filter((path) => !isHidden(path));
  const isAbsent = readable !== undefined && !shown.some(({ path }) => isWithin(input.workspace, path));
  // Paths in a write root are visible with it, and must stay writable.
  const needsExposing = shown.filter(({ path }) => !roots.includes(path) && isCloser(path, { covers, than: roots }));

  const steps: Step[] = [
    ...base.map((path): Step => ({ kind: "empty", path })),
    // Programs are started there, whatever they may read.
    ...(isAbsent ? [{ kind: "empty", path: input.workspace } as const] : []),
    ...(readable?.links ?? []).filter(({ path }) => isHidden(path)).map((link): Step => ({ kind: "link", ...link })),
    { kind: "proc", path: "/proc" },
    { kind: "dev", path: "/dev" },
    ...temporary.map(({ path, source }): Step => ({ kind: "bind", source, path, isWritable: true })),
    ...runFolders.map((path): Step => ({ kind: "empty", path })),
    ...needsExposing.map((entry): Step => ({ kind: "bind", ...entry, isWritable: false })),
    ...roots.map((root) => rootStep(root, input)),
    ...input.gitFolders.map((path): Step => ({ kind: "bind", source: path, path, isWritable: true })),
    ...input.protectedPaths.map((path): Step => ({ kind: "bind", source: path, path, isWritable: false })),
    ...input.masked.filter(({ path }) => !isHidden(path)).map((masked) => maskStep(masked, input)),
  ];
  const sockets = socketSteps(input, steps);
  return {
    steps: dropRepeated([...steps, ...sockets]).toSorted((a, b) => depth(a.path) - depth(b.path)),
    writeRoots: roots,
    coveredSockets: new Set(sockets.flatMap((step) => (step.kind === "bind" ? [step.path] : []))),
    writable: [...roots, ...temporary.map(({ path }) => path), "/dev/shm", "/dev/pts", "/proc"],
  };
}

/** What has to be there in spite of covers. A mask hides a read root inside it. */
function seen({ workspace, visible, readable, masked }: LayoutInput): LayoutInput["visible"] {
  if (readable === undefined) return [{ source: workspace, path: workspace }, ...visible];
  return readable.roots
    .filter((root) => !masked.some(({ path }) => isWithin(root, path)))
    .map((root) => ({ source: root, path: root }));
}

function rootStep(path: string, { workspace, tree }: LayoutInput): Step {
  if (tree === undefined || path !== workspace) return { kind: "bind", source: path, path, isWritable: true };
  if (tree.kind === "folder") return { kind: "bind", source: tree.source, path, isWritable: true };
  return { kind: "overlay", path, lowerCount: tree.lower.length };
}

/** A folder of sockets is covered whole; in the workspace each socket keeps its path, because git looks there. */
function socketSteps(input: LayoutInput, others: readonly Step[]): Step[] {
  const covered = new Set(input.socketFolders.filter((folder) => !isInSight(folder, input)));
  const find = exposure(others);
  const folders = [...covered].flatMap(find).map((path): Step => ({ kind: "empty", path }));
  const single = input.sockets
    .filter((path) => !covered.has(dirname(path)))
    .flatMap((path) => find(path).map((socket): Step => coverStep(socket, socketCover(path, input))));
  const steps = [...folders, ...single];
  if (steps.length > MAX_SOCKET_COVERS) throw tooManySockets(steps);
  return steps;
}

export function coverStep(path: string, source: string): Step {
  return { kind: "bind", source, path, isWritable: false };
}

function tooManySockets(steps: readonly Step[]): HeddleError {
  const counts = new Map<string, number>();
  for (const { path } of steps) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  const [folder, count] = [...counts].reduce((most, entry) => (entry[1] > most[1] ? entry : most));
  return new HeddleError(
    "sandbox.unavailable",
    `${steps.length} sockets of other programs lie in reach of commands, and at most ${MAX_SOCKET_COVERS} can be covered; ` +
      `${count} of them are in ${folder}: put them into a folder that holds nothing else, or below /run, or end those programs`,
  );
}

/** Where a path of the host is visible inside: at its own path, below a folder that was bound elsewhere, or nowhere. */
export function exposure(steps: readonly Step[]): (path: string) => string[] {
  const byPath = new Map(steps.map((step) => [step.path, step]));
  const moved = steps.flatMap((step) => (step.kind === "bind" && step.source !== step.path ? [step] : []));
  const shownAt = (path: string): string | undefined => {
    for (let around = path; ; around = dirname(around)) {
      const step = byPath.get(around);
      if (step?.kind === "bind") return step.source + path.slice(around === "/" ? 0 : around.length);
      if (step !== undefined) return undefined;
      if (around === "/") return path;
    }
  };
  return (path) => {
    const shown = [path];
    for (const { source, path: to } of moved) if (isBelow(path, source)) shown.push(to + path.slice(source.length));
    return [...new Set(shown)].filter((at) => shownAt(at) === path);
  };
}

/**
 * Adds a mount for every folder between a write root and a path mounted below it. A mount point cannot be moved away,
 * so no command can put a link there that the mounts of a later command would follow. Only needed where mounts are made
 * for each command.
 */
export function pinParents(layout: Layout): Layout {
  const taken = new Set(layout.steps.map((step) => step.path));
  const pins = new Map<string, Step>();
  for (const { path } of layout.steps) {
    const root = layout.writeRoots.find((candidate) => isBelow(path, candidate));
    if (root === undefined) continue;
    for (let parent = dirname(path); isBelow(parent, root); parent = dirname(parent)) {
      if (!taken.has(parent)) pins.set(parent, { kind: "bind", source: parent, path: parent, isWritable: true });
    }
  }
  return { ...layout, steps: [...pins.values(), ...layout.steps].toSorted((a, b) => depth(a.path) - depth(b.path)) };
}

/** Connecting to a plain file is refused like connecting to a dead socket; but git has to find a socket. */
export function isInSight(
  path: string,
  { workspace, writeRoots }: Pick<LayoutInput, "workspace" | "writeRoots">,
): boolean {
  return [workspace, ...writeRoots].some((root) => isWithin(path, root));
}

function socketCover(path: string, input: LayoutInput): string {
  return isInSight(path, input) ? input.deadSocket : input.emptyFile;
}

function maskStep({ path, kind }: MaskedPath, input: LayoutInput): Step {
  if (kind === "directory") return { kind: "empty", path };
  return { kind: "bind", source: kind === "file" ? input.emptyFile : input.deadSocket, path, isWritable: false };
}

/** One step per path: later entries of the list are stricter (a mask beats a protection beats a bind). */
function dropRepeated(steps: readonly Step[]): Step[] {
  const last = new Map(steps.map((step) => [step.path, step]));
  return [...last.values()];
}

function depth(path: string): number {
  return path === "/" ? 0 : path.split("/").length - 1;
}
