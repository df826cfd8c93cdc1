/** Hosts of other kinds: with other mounts, without user namespaces, with one back-end only. */
import { spawnSync } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { findHostTool } from "./host-tools.ts";
import { openSandbox } from "./open.ts";
import { probeSandbox } from "./probe.ts";

const KEEPER = fileURLToPath(new URL("../../test/sandbox-keeper.ts", import.meta.url));
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function tempFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "heddle-sandbox-test-")));
  folders.push(folder);
  return folder;
}

test("13: a workspace that is a mount of its own is there inside, also below a folder that is covered", async () => {
  const workspace = await tempFolder();
  const keeper = [process.execPath, "--conditions=heddle-source", KEEPER, "namespaces", workspace, "", "ls"];
  const mounted = ["sh", "-c", `mount -t tmpfs none "$0" && : > "$0/mine" && exec "$@"`, workspace, ...keeper];
  const result = spawnSync("unshare", ["--user", "--map-root-user", "--mount", ...mounted], { encoding: "utf8" });
  expect(result).toMatchObject({ stderr: "", stdout: "mine\n" });
});

test("mounts of the host may be called what they like: each is read-only inside", async () => {
  const workspace = await tempFolder();
  const script = `
    for source in none heddle tmpfs proc '#' 'a b'; do mkdir "/mnt/$source" && mount -t tmpfs "$source" "/mnt/$source" || exit 1; done
    exec "$@"
  `;
  const inside = `cd /mnt && for mount in *; do { : > "$mount/x"; } 2>/dev/null && echo "$mount is writable"; done; ls`;
  const keeper = [process.execPath, "--conditions=heddle-source", KEEPER, "namespaces", workspace, "", inside];
  // Its own /mnt, so that nothing is left of it.
  const mounted = ["sh", "-c", `mount -t tmpfs own /mnt && ${script}`, "sh", ...keeper];
  const result = spawnSync("unshare", ["--user", "--map-root-user", "--mount", ...mounted], { encoding: "utf8" });
  expect(result).toMatchObject({ stderr: "", stdout: "#\na b\nheddle\nnone\nproc\ntmpfs\n" });
});

test("S5: a host without user namespaces gets a typed refusal that says what would fix it", () => {
  const script = `echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"`;
  const result = spawnSync(
    "unshare",
    [
      "--user",
      "--map-root-user",
      "sh",
      "-c",
      script,
      "sh",
      process.execPath,
      "--conditions=heddle-source",
      KEEPER,
      "auto",
      tmpdir(),
      "x",
    ],
    { encoding: "utf8" },
  );
  expect(result.stdout).toBe("sandbox.unavailable");
  expect(result.stderr).toContain("max_user_namespaces");
  expect(result.stderr).toContain("bubblewrap");
});

const hasBwrap = findHostTool("bwrap") !== undefined;
test.runIf(!hasBwrap)(
  `bwrap that is not installed is refused by name${hasBwrap ? " (it is installed)" : ""}`,
  async () => {
    const workspace = await tempFolder();
    await expect(
      openSandbox({ workspace, writeRoots: [workspace], masked: [], network: "none" }, { backend: "bwrap" }),
    ).rejects.toMatchObject({
      code: "sandbox.unavailable",
      message: expect.stringContaining("bubblewrap"),
    });
  },
);

test("the probe says for each back-end whether it works", async () => {
  const { namespaces, bwrap } = await probeSandbox();
  expect(namespaces).toMatchObject({
    ok: true,
    holds: { memory: { by: expect.any(String) }, systemCalls: "filtered" },
  });
  expect(bwrap.ok).toBe(findHostTool("bwrap") !== undefined);
  // It goes the way of a turn, so it meets what would stop one.
  const missing = await probeSandbox("/no/such/folder");
  expect(missing.namespaces).toEqual({ ok: false, reason: expect.stringContaining("/no/such/folder") });
});
