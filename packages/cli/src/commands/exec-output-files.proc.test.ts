/** 12.1 through the doors: what options name to be written is the user's pipe, device or link, or none of an agent's. */
import { execFile } from "node:child_process";
import { lstat, mkdir, readFile, readlink, symlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { LAUNCHER, run } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld, threadOf } from "../../test/mock-model.ts";

const promised = promisify(execFile);
const isLinux = process.platform === "linux";

function resultIn(text: string): RunResult {
  return RunResult.parse(JSON.parse(text));
}

test.runIf(isLinux)(
  "12.1: --result-json writes into the user's pipes and links and leaves them (needs /proc)",
  async () => {
    await using mock = await openMockWorld({ script: [{ text: "answer" }] });
    const { root, workspace, env } = mock.world;
    await symlink("/proc/self/fd/1", path.join(root, "out"));
    await mkdir(path.join(root, "data"));
    await symlink("data/result.json", path.join(root, "mine.json"));
    const script = `
    exec < /dev/null
    mkfifo ../pipe; timeout 20 cat ../pipe > ../from-pipe & "$@" --result-json ${root}/pipe go > /dev/null; wait
    "$@" --result-json >(cat > ../from-substitution) go > /dev/null
    { echo first; "$@" -o ../last --result-json ${root}/out go | tail -n +2; echo last; } > ../from-stdout
    "$@" --result-json ${root}/mine.json go > /dev/null`;
    await promised("bash", ["-ec", script, "bash", process.execPath, LAUNCHER, "exec"], {
      cwd: workspace,
      env: { ...env, ...MOCK_KEY },
    });
    for (const name of ["from-pipe", "from-substitution", "data/result.json"])
      expect(resultIn(await readFile(path.join(root, name), "utf8"))).toMatchObject({
        status: "completed",
        exit_code: 0,
      });
    const [first, ...rest] = (await readFile(path.join(root, "from-stdout"), "utf8")).trimEnd().split("\n");
    expect([first, rest.pop()]).toEqual(["first", "last"]);
    expect(resultIn(rest.join("\n"))).toMatchObject({ status: "completed" });
    expect((await lstat(path.join(root, "pipe"))).isFIFO()).toBe(true);
    expect(await readlink(path.join(root, "out"))).toBe("/proc/self/fd/1");
    expect(await readlink(path.join(root, "mine.json"))).toBe("data/result.json");
  },
);

test.runIf(isLinux)(
  "12.1: a link in a workspace of an earlier run leads a later one nowhere (needs /proc)",
  async () => {
    await using mock = await openMockWorld({ script: [{ text: "answer" }] });
    const { workspace } = mock.world;
    const keys = await mock.world.file("ssh/keys", "mine");
    await mkdir(path.join(workspace, "sub"));
    const thread = threadOf(await mock.exec(["--json", "go"]));
    const below = ["--skip-git-repo-check", "-C", path.join(workspace, "sub")];
    const names = ["a.txt", "../b.txt", path.join(workspace, "c.txt"), "out/keys", path.join(workspace, "out", "keys")];
    for (const name of ["a.txt", "b.txt", "c.txt"]) await symlink("../ssh/keys", path.join(workspace, name));
    await symlink("../ssh", path.join(workspace, "out"));
    const codes: (number | null)[] = [];
    for (const flag of ["-o", "--result-json"])
      for (const name of names) {
        const cwd = name.startsWith("..") ? path.join(workspace, "sub") : workspace;
        codes.push((await mock.exec([...below, flag, name, "go"], { cwd })).code);
      }
    expect(codes).toEqual([0, 0, 0, 7, 7, 0, 0, 0, 7, 7]);
    expect(await run(["threads", "export", thread, "-o", "out/keys"], { world: mock.world })).toMatchObject({
      code: 7,
    });
    expect(await readFile(keys, "utf8")).toBe("mine");
  },
);

test.runIf(isLinux)(
  "12.1: a pipe in the workspace is refused before the run and holds up nothing (needs /proc)",
  async () => {
    await using mock = await openMockWorld({ script: [{ text: "answer" }] });
    const thread = threadOf(await mock.exec(["--json", "go"]));
    await promised("mkfifo", [path.join(mock.world.workspace, "pipe")]);
    const asked = mock.server.requests.length;
    const refused = {
      code: 7,
      stderr: expect.stringContaining("pipe is a pipe or a device in a folder that agents may"),
    };
    expect(await mock.exec(["-o", "pipe", "go"])).toMatchObject(refused);
    expect(await mock.exec(["--result-json", "pipe", "go"])).toMatchObject(refused);
    expect(await run(["threads", "export", thread, "-o", "pipe"], { world: mock.world })).toMatchObject(refused);
    expect(mock.server.requests.length).toBe(asked);
  },
);
