/**
 * Turns a layout into one list of mounts that a single `mount --all` carries out, and checks the mounts that came out.
 * Every mount of the host is made read-only by itself, repeating the flags it has, because a user namespace may not take
 * a flag away.
 */
import { basename, dirname, join } from "node:path";
import type { Layout, Step } from "./layout.ts";
import { isBelow, isWithin, mountAt, mountFlags, visibleMounts, type Mount } from "./mountinfo.ts";
import { isReachable } from "./reachable.ts";
import type { Scratch } from "./scratch.ts";

/** A mount point that does not exist yet, because what lies around it is put there by the sandbox itself. */
export interface MountPoint {
  readonly path: string;
  /** It becomes the kind of thing that is mounted on it; absent: a folder. */
  readonly like?: string;
}

export interface MountPlan {
  /** As mount(8) reads it, in the order in which the mounts are made. */
  readonly fstab: string;
  readonly mountPoints: readonly MountPoint[];
  /** A folder that is bound holds the new root itself, and would bring along a copy of all that is put together there. */
  readonly holdsRoot: boolean;
}

type ScratchPaths = Pick<Scratch, "root" | "covers" | "devices">;

export interface MountHost {
  readonly mounts: readonly Mount[];
  /** Names of `DEVICES` that exist. */
  readonly devices: readonly string[];
}

export function planMounts(steps: readonly Step[], host: MountHost, scratch: ScratchPaths): MountPlan {
  const visible = visibleMounts(host.mounts).filter((mount) => isReachable(mount.path));
  const replaced = steps.map((step) => step.path);
  const lines: Line[] = [];
  for (const mount of visible) {
    if (mount.path !== "/" && replaced.some((path) => isWithin(mount.path, path))) continue;
    lines.push(remount(mount.path, flags(mount, ["ro", "nosuid", "nodev"])));
  }
  for (const step of steps) lines.push(...stepLines(step, { ...host, visible, scratch }));
  // A cover is sealed last, when everything that shows through it has its place.
  const covers = flags(mountAt(host.mounts, scratch.covers), ["ro", "nosuid", "nodev"]);
  for (const step of steps) if (step.kind === "empty") lines.push(remount(step.path, covers));
  return {
    fstab: lines.map((line) => fstabLine(line, scratch.root)).join(""),
    mountPoints: steps.flatMap((step) => pointsOf(step, steps, scratch)),
    holdsRoot: steps.some((step) => step.kind === "bind" && isWithin(scratch.root, step.source)),
  };
}

interface Line {
  /** Absent for a mount that is there already. */
  readonly source?: string;
  /** As it will be inside. */
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
    case "overlay": {
      // Relative to the folder that the room's layers are linked in, so that no path has to be spelled in an option.
      const lower = Array.from({ length: step.lowerCount }, (_, index) => String(index)).join(":");
      const layers = `lowerdir=${lower},upperdir=upper,workdir=work,userxattr`;
      return [
        { source: "heddle-room", path: step.path, type: "overlay", options: `${layers},strictatime,nosuid,nodev` },
      ];
    }
    case "dev":
      return [
        bind(scratch.devices, "/dev"),
        // Read-only, a device is written all the same, but its mode and its owner stay the host's.
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
 * mount(8) leaves out a line when something of the same source is mounted there already, and a host may have called its mount
 * "none" or anything else: what is mounted again has the name of this sandbox's folder as its source, which is nobody else's.
 * A bind is known by what is bound, so that one of a mount of the host, which came along with the root and is covered by now,
 * would be left out; spelled like this its place is no place of another mount.
 */
function fstabLine({ source, path, type, options }: Line, root: string): string {
  const target = path === "/" ? root : source === undefined ? root + path : `${root}/.${path}`;
  return `${escapeField(source ?? basename(dirname(root)))} ${escapeField(target)} ${type} ${options} 0 0\n`;
}

/** White space ends a field, a backslash begins an escape and a # at the beginning makes the line a comment. */
function escapeField(field: string): string {
  return field.replaceAll(/[\s\\#]/g, (character) =>
    [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join(""),
  );
}

/** The folder that stands in for a covered place; its name is the path, so that two places never share one. */
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
  const path = standIn + step.path.slice(around.path.length);
  return [...own, step.kind === "bind" ? { path, like: step.source } : { path }];
}

/** What the sandbox puts in the place of the host's folder; undefined where the folder is the host's own. */
function standInOf(step: Step, scratch: ScratchPaths): string | undefined {
  switch (step.kind) {
    case "empty":
      return coverOf(step.path, scratch);
    case "dev":
      return scratch.devices;
    case "overlay":
    case "proc":
      return undefined;
    case "bind":
      return step.source === step.path ? undefined : step.source;
  }
}

/**
 * Compares the mounts inside with the plan: nothing else may be writable, every step must be where it belongs, and there
 * must be no mount that neither the plan nor the host has. Somebody who swapped a path for a link while the mounts were
 * made shows up here.
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
    ...layout.steps.filter((step) => !paths.has(step.path)).map((step) => `${step.path} is not mounted`),
    ...layout.steps
      .filter((step) => step.kind === "overlay" && mountAt(inside, step.path)?.type !== "overlay")
      .map((step) => `${step.path} is not the room`),
    ...[...paths].filter((path) => !expected.has(path) && !isSystem(path)).map((path) => `${path} is mounted`),
  ];
}

function expectedPaths(steps: readonly Step[], hostMounts: readonly Mount[]): Set<string> {
  const expected = new Set(["/", ...hostMounts.map((mount) => mount.path), ...steps.map((step) => step.path)]);
  for (const step of steps) {
    if (step.kind !== "bind") continue;
    for (const mount of hostMounts) {
      if (isBelow(mount.path, step.source)) expected.add(step.path + mount.path.slice(step.source.length));
    }
  }
  return expected;
}
