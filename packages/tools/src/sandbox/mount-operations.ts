/**
 * Turns a layout into the operations of the holder script, and checks the mounts that came out. Every mount of the host
 * is made read-only by itself, repeating the flags it has, because a user namespace may not take a flag away.
 */
import type { Step } from "./layout.ts";
import { isBelow, isWithin, mountAt, mountFlags, visibleMounts, type Mount } from "./mountinfo.ts";
import { isReachable } from "./reachable.ts";

export function mountOperations(steps: readonly Step[], hostMounts: readonly Mount[]): string[] {
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
  return [...operations, ...seals];
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

/** Mounts inside the sandbox that can be written although the layout does not say so. */
export function unexpectedlyWritable(inside: readonly Mount[], writable: readonly string[]): string[] {
  return visibleMounts(inside)
    .filter((mount) => !mount.options.includes("ro") && isReachable(mount.path))
    .filter((mount) => !isDeviceNode(mount) && !writable.some((path) => isWithin(mount.path, path)))
    .map((mount) => mount.path);
}

/** A device node is a mount of its own; there is nothing below it to write to. */
function isDeviceNode(mount: Mount): boolean {
  return /^\/dev\/(?:null|zero|full|random|urandom|tty)$/.test(mount.path);
}
