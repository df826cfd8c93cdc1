import { chmod, mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isWithin } from "../sandbox/mountinfo.ts";
import { systemFolders } from "./system-folders.ts";

test("what programs need is the distribution's, the Node that runs and the folders of PATH in nobody's home", async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "heddle-system-")));
  try {
    for (const name of ["kit/bin", "kit/lib", "plain", "node/bin", "node/lib/node_modules"])
      await mkdir(join(root, name), { recursive: true });
    await symlink(homedir(), join(root, "door"));
    const path = [join(root, "kit/bin"), join(root, "plain"), `${join(root, "kit/bin")}/`, "/", "", "relative/bin"];
    const homes = [join(homedir(), "bin"), "/root/bin", "/home/somebody/bin", join(root, "door/bin"), "/home", "/root"];
    const { folders } = systemFolders([...path, ...homes].join(":"), join(root, "node/bin/node"));
    const own = folders.filter((folder) => isWithin(folder, root));
    expect(own).toEqual(["kit", "plain", "node/bin", "node/lib/node_modules"].map((name) => join(root, name)));
    expect(folders).toEqual(expect.arrayContaining(["/usr", "/etc", "/bin"]));
    expect(folders.filter((folder) => isWithin(homedir(), folder) || folder === "/")).toEqual([]);
  } finally {
    await rm(root, { recursive: true });
  }
});

test("settings that not everybody may read are masked", async () => {
  const { closed } = systemFolders();
  expect(closed.filter((path) => !isWithin(path, "/etc") && !isWithin(path, "/usr/local/etc"))).toEqual([]);
  expect(closed).toContain("/etc/shadow");
  expect(closed).not.toContain("/etc/passwd");
});

test.runIf(process.getuid?.() === 0)("a folder of settings that is closed is masked whole (needs root)", async () => {
  const folder = await mkdtemp("/usr/local/etc/heddle-closed-").catch(() => mkdtemp("/etc/heddle-closed-"));
  try {
    await mkdir(join(folder, "open"));
    await mkdir(join(folder, "shut/deep"), { recursive: true });
    await chmod(folder, 0o755);
    await chmod(join(folder, "shut"), 0o700);
    // Another PATH, so that an earlier look does not count.
    const { closed } = systemFolders(`${folder}/open`);
    expect(closed.filter((path) => isWithin(path, folder))).toEqual([join(folder, "shut")]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
