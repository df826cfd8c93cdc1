import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makePrivateFolder } from "./home.ts";
import { openJournal } from "./sqlite/sqlite.ts";

test("every folder on the way is made for the owner alone", async () => {
  const root = await mkdtemp(join(tmpdir(), "heddle-home-"));
  try {
    makePrivateFolder(join(root, "a", "b", "c"));
    makePrivateFolder(join(root, "a", "b", "c"));
    for (const folder of ["a", "a/b", "a/b/c"]) {
      expect((await stat(join(root, folder))).mode & 0o777).toBe(0o700);
    }
  } finally {
    await rm(root, { recursive: true });
  }
});

test.runIf(process.platform === "linux")(
  "a home where no folder can be made is refused at once, with its path",
  async () => {
    await expect(openJournal({ home: "/proc/heddle/home" })).rejects.toMatchObject({
      code: expect.stringMatching(/^store\./),
      message: expect.stringContaining("/proc/heddle"),
    });
  },
);
