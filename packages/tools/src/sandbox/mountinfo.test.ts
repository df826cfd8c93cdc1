import { expect, test } from "vitest";
import { findDeviations, planMounts } from "./mount-plan.ts";
import { isBelow, isWithin, mountAt, mountFlags, parseMountinfo, visibleMounts } from "./mountinfo.ts";

const TEXT = `20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw
21 20 0:5 / /dev rw,nosuid - devtmpfs udev rw
22 20 8:2 / /home rw,nosuid,nodev,noexec,noatime - ext4 /dev/sdb rw
23 22 0:6 / /home/with\\040space\\012and\\134 rw - tmpfs none rw
24 20 0:7 / /data rw - ext4 /dev/sdc rw
25 24 0:8 / /data/inner rw - ext4 /dev/sdd rw
26 24 0:9 / /data rw - tmpfs none rw
`;

test("names the kernel has escaped are given back", () => {
  expect(parseMountinfo(TEXT)[3]).toEqual({
    id: 23,
    parent: 22,
    path: "/home/with space\nand\\",
    options: ["rw"],
    type: "tmpfs",
  });
});

test("a mount that another one covers is not visible, nor is what was mounted below it", () => {
  const mounts = parseMountinfo(TEXT);
  expect(visibleMounts(mounts).map(({ id }) => id)).toEqual([20, 21, 22, 23, 26]);
  expect(mountAt(mounts, "/data/inner/file")?.id).toBe(26);
  expect(mountAt(mounts, "/home/a")?.id).toBe(22);
  expect(mountAt(mounts, "/homes")?.id).toBe(20);
});

const SCRATCH = { root: "/tmp/scratch/root", covers: "/tmp/scratch/covers", devices: "/tmp/scratch/dev" };
const HOST = { mounts: parseMountinfo(TEXT.split("\n").slice(0, 3).join("\n")), devices: ["null"] };

test("flags that a user namespace may not take away are repeated", () => {
  expect(mountFlags(mountAt(parseMountinfo(TEXT), "/home/x"))).toEqual(["nosuid", "nodev", "noexec", "noatime"]);
  const { fstab } = planMounts([{ kind: "bind", source: "/home/p", path: "/home/p", isWritable: true }], HOST, SCRATCH);
  expect(fstab.trimEnd().split("\n")).toEqual([
    "scratch /tmp/scratch/root none remount,bind,relatime,ro,nosuid,nodev 0 0",
    "scratch /tmp/scratch/root/dev none remount,bind,nosuid,ro,nodev 0 0",
    "scratch /tmp/scratch/root/home none remount,bind,nosuid,nodev,noexec,noatime,ro 0 0",
    "/home/p /tmp/scratch/root/./home/p none rbind 0 0",
    "scratch /tmp/scratch/root/home/p none remount,bind,nosuid,nodev,noexec,noatime 0 0",
  ]);
});

test("a name cannot end its field, begin another line or become a comment", () => {
  const path = "/home/a b\tc\nd\\e#f\u00A0g";
  const { fstab } = planMounts([{ kind: "bind", source: path, path, isWritable: false }], HOST, SCRATCH);
  const line = fstab.split("\n")[3];
  expect(line).toBe(
    String.raw`/home/a\040b\011c\012d\134e\043f\302\240g /tmp/scratch/root/./home/a\040b\011c\012d\134e\043f\302\240g none rbind 0 0`,
  );
});

test("what shows through a covered folder gets its mount point in the stand-in", () => {
  const { fstab, mountPoints } = planMounts(
    [
      { kind: "empty", path: "/run" },
      { kind: "bind", source: "/run/tools/bin", path: "/run/tools/bin", isWritable: false },
      { kind: "bind", source: "/tmp/scratch/tmp", path: "/tmp", isWritable: true },
      { kind: "bind", source: "/tmp/work", path: "/tmp/work", isWritable: true },
    ],
    HOST,
    SCRATCH,
  );
  expect(mountPoints).toEqual([
    { path: "/tmp/scratch/covers/%2Frun" },
    { path: "/tmp/scratch/covers/%2Frun/tools/bin", like: "/run/tools/bin" },
    { path: "/tmp/scratch/tmp/work", like: "/tmp/work" },
  ]);
  expect(fstab.trimEnd().split("\n").at(-1)).toBe(
    "scratch /tmp/scratch/root/run none remount,bind,relatime,ro,nosuid,nodev 0 0",
  );
});

test("a new root below a folder that is bound is kept out of that folder's copy", () => {
  const steps = [{ kind: "bind", source: "/home/p", path: "/home/p", isWritable: true }] as const;
  expect(planMounts(steps, HOST, SCRATCH).holdsRoot).toBe(false);
  expect(planMounts(steps, HOST, { ...SCRATCH, root: "/home/p/tmp/scratch/root" }).holdsRoot).toBe(true);
});

test("a mount that stayed writable, is missing or was not asked for is named", () => {
  const host = parseMountinfo("1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 / /usr rw - ext4 a rw\n");
  const inside = parseMountinfo(
    "1 0 8:1 / / ro - ext4 a rw\n2 1 8:1 / /usr rw - ext4 a rw\n3 1 8:1 / /tmp rw - ext4 a rw\n4 1 8:1 / /etc ro - ext4 a rw\n",
  );
  const steps = ["/tmp", "/var"].map((path) => ({ kind: "bind", source: path, path, isWritable: true }) as const);
  expect(
    findDeviations(inside, { steps, writeRoots: [], coveredSockets: new Set<string>(), writable: ["/tmp"] }, host),
  ).toEqual(["/usr is writable", "/var is not mounted", "/etc is mounted"]);
});

test("paths are compared by components", () => {
  expect(isWithin("/a/bc", "/a/b")).toBe(false);
  expect(isWithin("/a/b/c", "/a/b")).toBe(true);
  expect(isBelow("/a/b", "/a/b")).toBe(false);
  expect(isBelow("/a", "/")).toBe(true);
});
