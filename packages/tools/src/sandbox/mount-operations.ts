/**
 * Turns a layout into the operations of the holder script, and checks the mounts that came out. Every mount of the host
 * is made read-only by itself, repeating the flags it has, because a user namespace may not take a flag away.
 */
import type { Layout, Step } from "./layout.ts";
import { isBelow, isWithin, mountAt, mountFlags, visibleMounts, type Mount } from "./mountinfo.ts";
import { isReachable } from "./reachable.ts";

export function mountOperations(steps: readonly Step[], hostMounts: readonly Mount[], newRoot: string): string[] {
  const visible = visibleMounts(hostMounts).filter((mount) => isReachable(mount.path));
  const replaced = steps.map((step) => step.path);
  const operations: string[] = [];
  for (const mount of visible) {
    if (mount.path !== "/" && replaced.some((path) => isWithin(mount.path, path))) continue;
    operations.push("flags", rootless(mount.path), flags(mount, ["ro", "nosuid", "nodev"]));
  }
  const seals: string[] = [];
  for (const step of steps) {
    switch (step.kind) {
      case "bind":
        operations.push("bind", step.source, step.path, ...bindFlags(step, hostMounts, visible));
        break;
      case "empty":
        operations.push("empty", step.path);
        seals.push("flags", step.path, "ro,nosuid,nodev");
        break;
      case "dev":
        operations.push("dev");
        seals.push("flags", "/dev", "ro,nosuid");
        break;
      case "proc":
        operations.push("proc");
        break;
    }
  }
  // A folder that holds the new root itself would bring along a copy of all that is being put together there.
  const holdsRoot = steps.some((step) => step.kind === "bind" && isWithin(newRoot, step.source));
  return holdsRoot ? ["unbindable", ...operations, ...seals, "private"] : [...operations, ...seals];
}

function bindFlags(
  step: Extract<Step, { kind: "bind" }>,
  hostMounts: readonly Mount[],
  visible: readonly Mount[],
): string[] {
  const added = step.isWritable ? ["nosuid", "nodev"] : ["ro", "nosuid", "nodev"];
  const operations = ["flags", step.path, flags(mountAt(hostMounts, step.source), added)];
  for (const mount of visible) {
    if (!isBelow(mount.path, step.source)) continue;
    operations.push("flags", step.path + mount.path.slice(step.source.length), flags(mount, added));
  }
  return operations;
}

function flags(mount: Mount | undefined, added: readonly string[]): string {
  return [...new Set([...mountFlags(mount), ...added])].join(",");
}

/** The script puts the new root before each path; the root itself is the empty one. */
function rootless(path: string): string {
  return path === "/" ? "" : path;
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
      .filter((mount) => !mount.options.includes("ro") && !isDeviceNode(mount))
      .filter((mount) => !layout.writable.some((path) => isWithin(mount.path, path)))
      .map((mount) => `${mount.path} is writable`),
    ...layout.steps.filter((step) => !paths.has(step.path)).map((step) => `${step.path} is not mounted`),
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

/** A device node is a mount of its own; there is nothing below it to write to. */
function isDeviceNode(mount: Mount): boolean {
  return /^\/dev\/(?:null|zero|full|random|urandom|tty)$/.test(mount.path);
}
