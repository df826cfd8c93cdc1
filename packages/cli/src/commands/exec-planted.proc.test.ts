/** 12.1 through the doors: what an agent puts in the place of a file that Heddle will write leads no write anywhere. */
import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { openMockWorld, threadOf, type MockWorld } from "../../test/mock-model.ts";

async function planting(cmd: string): Promise<MockWorld & { readonly keys: string }> {
  const mock = await openMockWorld({
    script: [{ calls: [{ tool: "exec_command", args: { cmd } }] }, { text: "answer" }],
  });
  await mkdir(path.join(mock.world.workspace, "a", "b"), { recursive: true });
  return { ...mock, keys: await mock.world.file("ssh/keys", "mine") };
}

const CASES: readonly (readonly [string, string, string])[] = [
  ["the file", "a/b/x", "ln -s ../../../ssh/keys a/b/x"],
  ["the file by another name of it", "a/b/x", "ln ../ssh/keys a/b/x || ln -s ../../../ssh/keys a/b/x"],
  ["its folder", "a/b/keys", "mv a/b a/c; ln -s ../../ssh a/b"],
  ["the folder above", "a/ssh/keys", "mkdir a/ssh 2>&-; mv a c; ln -s .. a"],
];

test.each(CASES)(
  "12.1: -o and --result-json are not written through a link in the place of %s",
  async (_, name, cmd) => {
    await using mock = await planting(cmd);
    await mkdir(path.join(mock.world.workspace, path.dirname(name)), { recursive: true });
    await mock.exec(["-s", "workspace-write", "-o", name, "go"]);
    await mock.exec(["-s", "workspace-write", "--result-json", name, "go"]);
    expect(await readFile(mock.keys, "utf8")).toBe("mine");
    expect(await readdir(path.dirname(mock.keys))).toEqual(["keys"]);
  },
);

test("12.1: a link that an earlier run left is not followed either: by -o, a result, artifacts or an export", async () => {
  await using mock = await planting("true");
  const { workspace, root } = mock.world;
  await symlink("../ssh", path.join(workspace, "out"));
  for (const flags of [
    ["-o", "out/keys"],
    ["--result-json", "out/keys"],
    ["--artifact-root", "out/runs"],
  ]) {
    const ran = await mock.exec(["-s", "workspace-write", ...flags, "go"]);
    expect(ran).toMatchObject({
      code: 7,
      stderr: expect.stringContaining("is a link in a folder that agents may write"),
    });
  }
  const thread = threadOf(await mock.exec(["--json", "go"]));
  await symlink("../ssh/keys", path.join(workspace, "x"));
  expect(await run(["threads", "export", thread, "-o", "out/keys"], { world: mock.world })).toMatchObject({ code: 7 });
  expect(await run(["threads", "export", thread, "-o", "x"], { world: mock.world })).toMatchObject({ code: 0 });
  expect(await readFile(path.join(workspace, "x"), "utf8")).toContain("heddle-export");
  expect(await readFile(mock.keys, "utf8")).toBe("mine");
  // The user's own link, outside of what agents write, is followed.
  await mkdir(path.join(root, "data"));
  await symlink("data", path.join(root, "mine"));
  expect(await mock.exec(["-o", path.join(root, "mine", "last.txt"), "go"])).toMatchObject({ code: 0 });
  expect(await readFile(path.join(root, "data", "last.txt"), "utf8")).toBe("answer");
});
