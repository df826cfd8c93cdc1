import { expect, test } from "vitest";
import { findDeviations, mountOperations } from "./mount-operations.ts";
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

test("flags that a user namespace may not take away are repeated", () => {
  const mounts = parseMountinfo(TEXT);
  expect(mountFlags(mountAt(mounts, "/home/x"))).toEqual(["nosuid", "nodev", "noexec", "noatime"]);
  const operations = mountOperations(
    [{ kind: "bind", source: "/home/p", path: "/home/p", isWritable: true }],
    parseMountinfo(TEXT.split("\n").slice(0, 3).join("\n")),
    "/tmp/scratch/root",
  );
  expect(operations.join(" ")).toBe(
    "flags  relatime,ro,nosuid,nodev flags /dev nosuid,ro,nodev flags /home nosuid,nodev,noexec,noatime,ro " +
      "bind /home/p /home/p flags /home/p nosuid,nodev,noexec,noatime",
  );
});

test("a new root below a folder that is bound is kept out of that folder's copy", () => {
  const steps = [{ kind: "bind", source: "/home/p", path: "/home/p", isWritable: true }] as const;
  const mounts = parseMountinfo(TEXT.split("\n").slice(0, 3).join("\n"));
  const operations = mountOperations(steps, mounts, "/home/p/tmp/scratch/root");
  expect([operations.at(0), operations.at(-1)]).toEqual(["unbindable", "private"]);
});

test("a mount that stayed writable, is missing or was not asked for is named", () => {
  const host = parseMountinfo("1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 / /usr rw - ext4 a rw\n");
  const inside = parseMountinfo(
    "1 0 8:1 / / ro - ext4 a rw\n2 1 8:1 / /usr rw - ext4 a rw\n3 1 8:1 / /tmp rw - ext4 a rw\n4 1 8:1 / /etc ro - ext4 a rw\n",
  );
  const steps = ["/tmp", "/var"].map((path) => ({ kind: "bind", source: path, path, isWritable: true }) as const);
  expect(findDeviations(inside, { steps, writeRoots: [], writable: ["/tmp"] }, host)).toEqual([
    "/usr is writable",
    "/var is not mounted",
    "/etc is mounted",
  ]);
});

test("paths are compared by components", () => {
  expect(isWithin("/a/bc", "/a/b")).toBe(false);
  expect(isWithin("/a/b/c", "/a/b")).toBe(true);
  expect(isBelow("/a/b", "/a/b")).toBe(false);
  expect(isBelow("/a", "/")).toBe(true);
});
