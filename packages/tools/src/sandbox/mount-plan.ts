/**
 * Turns a layout into one list of mounts for a single `mount --all`, and checks the result. Every mount of the host is
 * made read-only separately, repeating its flags, because a user namespace may not drop a flag.
 */
import { basename, dirname, join } from "node:path";
import type { Layout, Step } from "./layout.ts";
import { isBelow, isWithin, mountAt, mountFlags, visibleMounts, type Mount } from "./mountinfo.ts";
import { isReachable } from "./reachable.ts";
import type { Scratch } from "./scratch.ts";

/** A mount point that does not exist yet, because the sandbox itself mounts the folder around it. */
export interface MountPoint {
  readonly path: string;
  /** A path of the same kind; absent: a folder. */
  readonly like?: string;
  /** It is no mount point but a link that leads there. */
  readonly target?: string;
}

export interface MountPlan {
  readonly fstab: string;
  readonly mountPoints: readonly MountPoint[];
  /** A bound folder contains the new root, and would copy everything that is mounted there. */
  readonly holdsRoot: boolean;
}

type ScratchPaths = Pick<Scratch, "root" | "covers" | "devices">;

export interface MountHost {
  readonly mounts: readonly Mount[];
  readonly devices: readonly string[];
}

export function planMounts(steps: readonly Step[], host: MountHost, scratch: ScratchPaths): MountPlan {
  const visible = visibleMounts(host.mounts).filter((mount) => isReachable(mount.path));
  const replaced = steps.map((step) => step.path);
  const hasOwnBase = isOwnBase(steps);
  const lines: Line[] = [];
  for (const mount of visible) {
    if ((mount.path !== "/" || hasOwnBase) && replaced.some((path) => isWithin(mount.path, path))) continue;
    lines.push(remount(mount.path, flags(mount, ["ro", "nosuid", "nodev"])));
  }
  for (const step of steps) lines.push(...stepLines(step, { ...host, visible, scratch }));
  // Covers are made read-only last, after everything that shows through them is mounted.
  const covers = flags(mountAt(host.mounts, scratch.covers), ["ro", "nosuid", "nodev"]);
  for (const step of steps) if (step.kind === "empty") lines.push(remount(step.path, covers));
  return {
    fstab: lines.map((line) => fstabLine(line, scratch.root)).join(""),
    mountPoints: steps.flatMap((step) => pointsOf(step, steps, scratch)),
    holdsRoot: steps.some((step) => step.kind === "bind" && isWithin(scratch.root, step.source)),
  };
}

interface Line {
  /** Absent for a remount. */
  readonly source?: string;
  /** As seen inside. */
  readonly path: string;
  readonly type: string;
  readonly options: string;
}

interface StepSurroundings extends MountHost {
  readonly visible: readonly Mount[];
  readonly scratch: ScratchPaths;
}

function stepLines(step: Step, { mounts, visible, devices, scratch }: StepSurroundings): Line[] {
  switch (step.kind) {
    case "bind": {
      const added = step.isWritable ? ["nosuid", "nodev"] : ["ro", "nosuid", "nodev"];
      const below = visible.filter((mount) => isBelow(mount.path, step.source));
      return [
        bind(step.source, step.path),
        remount(step.path, flags(mountAt(mounts, step.source), added)),
        ...below.map((mount) => remount(step.path + mount.path.slice(step.source.length), flags(mount, added))),
      ];
    }
    case "empty":
      return [bind(coverOf(step.path, scratch), step.path)];
    case "link":
      return [];
    case "overlay": {
      // Relative to the folder with the links to the layers, so that no path appears in an option.
      const lower = Array.from({ length: step.lowerCount }, (_, index) => String(index)).join(":");
      const layers = `lowerdir=${lower},upperdir=upper,workdir=work,userxattr`;
      return [
        { source: "heddle-room", path: step.path, type: "overlay", options: `${layers},strictatime,nosuid,nodev` },
      ];
    }
    case "dev":
      return [
        bind(scratch.devices, "/dev"),
        // A read-only device can still be written, but its mode and owner cannot be changed.
        ...devices.flatMap((name) => [
          bind(`/dev/${name}`, `/dev/${name}`),
          remount(`/dev/${name}`, flags(mountAt(mounts, `/dev/${name}`), ["ro", "nosuid", "noexec"])),
        ]),
        { source: "heddle-shm", path: "/dev/shm", type: "tmpfs", options: "mode=1777,nosuid,nodev,size=1g" },
        remount("/dev", flags(mountAt(mounts, scratch.devices), ["ro", "nosuid"])),
      ];
    case "proc":
      return [{ source: "heddle-proc", path: "/proc", type: "proc", options: "nosuid,nodev,noexec" }];
  }
}

function bind(source: string, path: string): Line {
  return { source, path, type: "none", options: "rbind" };
}

function remount(path: string, options: string): Line {
  return { path, type: "none", options: `remount,bind,${options}` };
}

function flags(mount: Mount | undefined, added: readonly string[]): string {
  return [...new Set([...mountFlags(mount), ...added])].join(",");
}

/**
 * mount(8) skips a line when the same source is mounted there already. So a remount has this sandbox's folder as its
 * source, a name no other mount has; and the target of a bind is spelled with `/.`, so that it matches no mount of the
 * host that came along with the root.
 */
function fstabLine({ source, path, type, options }: Line, root: string): string {
  const target = path === "/" ? root : source === undefined ? root + path : `${root}/.${path}`;
  return `${escapeField(source ?? basename(dirname(root)))} ${escapeField(target)} ${type} ${options} 0 0\n`;
}

/** White space ends a field, a backslash begins an escape and a leading # makes a comment. */
function escapeField(field: string): string {
  return field.replaceAll(/[\s\\#]/g, (character) =>
    [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join(""),
  );
}

/** The host's tree is not there. */
function isOwnBase(steps: readonly Step[]): boolean {
  return steps.some(({ kind, path }) => kind === "empty" && path === "/");
}

/** The empty folder that covers a path; its name is the path, so that no two share one. */
function coverOf(path: string, scratch: ScratchPaths): string {
  return join(scratch.covers, encodeURIComponent(path));
}

function pointsOf(step: Step, steps: readonly Step[], scratch: ScratchPaths): MountPoint[] {
  const own = step.kind === "empty" ? [{ path: coverOf(step.path, scratch) }] : [];
  const around = steps
    .filter((other) => isBelow(step.path, other.path))
    .reduce<Step | undefined>(
      (best, other) => (best && best.path.length >= other.path.length ? best : other),
      undefined,
    );
  if (around === undefined) return own;
  const standIn = standInOf(around, scratch);
  if (standIn === undefined) return own;
  const path = standIn + step.path.slice(around.path === "/" ? 0 : around.path.length);
  if (step.kind === "link") return [...own, { path, target: step.target }];
  return [...own, step.kind === "bind" ? { path, like: step.source } : { path }];
}

/** What the sandbox mounts in place of the host's folder; undefined where it is the host's own. */
function standInOf(step: Step, scratch: ScratchPaths): string | undefined {
  switch (step.kind) {
    case "empty":
      return coverOf(step.path, scratch);
    case "dev":
      return scratch.devices;
    case "overlay":
    case "proc":
    case "link":
      return undefined;
    case "bind":
      return step.source === step.path ? undefined : step.source;
  }
}

/**
 * Compares the mounts inside with the plan: nothing else is writable, every step is mounted, and there is no mount that
 * neither the plan nor the host has. This detects a path that was swapped for a link meanwhile.
 */
export function findDeviations(inside: readonly Mount[], layout: Layout, hostMounts: readonly Mount[]): string[] {
  const seen = visibleMounts(inside).filter((mount) => isReachable(mount.path));
  const paths = new Set(seen.map((mount) => mount.path));
  const expected = expectedPaths(layout.steps, visibleMounts(hostMounts));
  const isSystem = (path: string): boolean => isWithin(path, "/dev") || isWithin(path, "/proc");
  return [
    ...seen
      .filter((mount) => !mount.options.includes("ro"))
      .filter((mount) => !layout.writable.some((path) => isWithin(mount.path, path)))
      .map((mount) => `${mount.path} is writable`),
    ...layout.steps
      .filter(({ kind, path }) => kind !== "link" && !paths.has(path))
      .map((step) => `${step.path} is not mounted`),
    ...layout.steps
      .filter((step) => step.kind === "overlay" && mountAt(inside, step.path)?.type !== "overlay")
      .map((step) => `${step.path} is not the room`),
    ...[...paths].filter((path) => !expected.has(path) && !isSystem(path)).map((path) => `${path} is mounted`),
  ];
}

function expectedPaths(steps: readonly Step[], hostMounts: readonly Mount[]): Set<string> {
  const ofHost = isOwnBase(steps) ? [] : hostMounts.map((mount) => mount.path);
  const expected = new Set(["/", ...ofHost, ...steps.map((step) => step.path)]);
  for (const step of steps) {
    if (step.kind !== "bind") continue;
    for (const mount of hostMounts) {
      if (isBelow(mount.path, step.source)) expected.add(step.path + mount.path.slice(step.source.length));
    }
  }
  return expected;
}
