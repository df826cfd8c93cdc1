import { execFile } from "node:child_process";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { at, KEY, list, serve, text, type Client } from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

const execute = promisify(execFile);

async function opened(world: World) {
  const served = serve([], { world, env: KEY });
  await served.client.initialize();
  return served;
}

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

async function paths(client: Client, query: string, roots: readonly string[]): Promise<readonly unknown[]> {
  const found = await client.call("fuzzyFileSearch", { query, roots, cancellationToken: null });
  return list(found, "files").map((file) => at(file, "path"));
}

async function git(world: World, ...args: string[]): Promise<string> {
  const who = ["-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "init.defaultBranch=main"];
  const { stdout } = await execute("git", [...who, ...args], { cwd: world.workspace, env: { ...world.env } });
  return stdout.trim();
}

test("fuzzyFileSearch finds files by letters of their names, without what git ignores", async () => {
  await using world = await openWorld();
  await rm(path.join(world.workspace, ".git"), { recursive: true });
  await git(world, "init", "-q");
  await world.file("workspace/src/peer-test.ts", "");
  await world.file("workspace/src/paper/other.ts", "");
  await world.file("workspace/build/peer.log", "");
  await world.file("workspace/.gitignore", "*.log\n");
  await using served = await opened(world);
  const { client } = served;
  const found = await client.call("fuzzyFileSearch", { query: "peer", roots: [world.workspace] });
  expect(list(found, "files")[0]).toEqual({
    root: world.workspace,
    path: "src/peer-test.ts",
    match_type: "file",
    file_name: "peer-test.ts",
    score: expect.any(Number),
    indices: [4, 5, 6, 7],
  });
  expect(await paths(client, "log", [world.workspace])).toEqual([]);
  expect(await paths(client, "", [world.workspace])).toEqual([]);
  expect(await paths(client, "peer", ["/no/such"])).toEqual([]);
  expect(await refused(client, "fuzzyFileSearch", { query: "a" })).toBe(
    "-32600 Invalid request: missing field `roots`",
  );
});

test("fuzzyFileSearch works outside git, keeps to its cap, and does not look into Heddle's home", async () => {
  await using world = await openWorld();
  const folder = path.join(world.root, "plain");
  await mkdir(folder);
  for (let count = 0; count < 60; count += 1) await writeFile(path.join(folder, `match-${count}`), "");
  await world.file("home/match-secret", "");
  await using served = await opened(world);
  expect(await paths(served.client, "match", [folder])).toHaveLength(50);
  expect(await paths(served.client, "match", [world.home])).toEqual([]);
  expect(await paths(served.client, "secret", [world.root])).toEqual([]);
});

test("15.13: fuzzyFileSearch finds files at any depth outside git, also in what is no repository in spite of its .git", async () => {
  await using world = await openWorld();
  await world.file("workspace/a/b/c/deep-match.ts", "");
  await world.file("plain/d/e/deep-match.ts", "");
  await world.file("plain/loop.txt", "");
  await symlink("..", path.join(world.root, "plain/d/up"));
  await using served = await opened(world);
  const plain = path.join(world.root, "plain");
  expect(await paths(served.client, "deepm", [plain, plain])).toEqual(["d/e/deep-match.ts"]);
  expect(await paths(served.client, "deepm", [world.workspace])).toEqual(["a/b/c/deep-match.ts"]);
});

test("15.13: a search with the token of an earlier one takes its place; both are answered", async () => {
  await using world = await openWorld();
  await world.file("plain/one-match.ts", "");
  await using served = await opened(world);
  const asked = ["one", "match"].map((query) =>
    served.client.call("fuzzyFileSearch", {
      query,
      roots: [path.join(world.root, "plain")],
      cancellationToken: "typed",
    }),
  );
  const found = (await Promise.all(asked)).map((result) => list(result, "files").length);
  expect(found).toEqual([0, 1]);
});

test("gitDiffToRemote answers what the remote lacks, changed and new", async () => {
  await using world = await openWorld();
  await rm(path.join(world.workspace, ".git"), { recursive: true });
  await git(world, "init", "-q");
  await world.file("workspace/a.txt", "one\n");
  await git(world, "add", ".");
  await git(world, "commit", "-qm", "first");
  await using served = await opened(world);
  const { client } = served;
  const failed = `-32600 failed to compute git diff to remote for cwd: ${JSON.stringify(world.workspace)}`;
  expect(await refused(client, "gitDiffToRemote", { cwd: world.workspace })).toBe(failed);
  await execute("git", ["clone", "-q", "--bare", world.workspace, path.join(world.root, "remote.git")]);
  await git(world, "remote", "add", "origin", path.join(world.root, "remote.git"));
  await git(world, "fetch", "-q", "origin");
  const sha = await git(world, "rev-parse", "HEAD");
  await world.file("workspace/a.txt", "two\n");
  await git(world, "commit", "-qam", "second");
  await world.file("workspace/new file.txt", "fresh\n");
  const diff = await client.call("gitDiffToRemote", { cwd: world.workspace });
  expect(at(diff, "sha")).toBe(sha);
  expect(text(diff, "diff")).toContain("-one\n+two\n");
  expect(text(diff, "diff")).toContain("new file.txt");
  expect(text(diff, "diff")).toContain("+fresh\n");
  expect(await refused(client, "gitDiffToRemote", { cwd: "/no/such" })).toMatch(/^-32600 failed to compute/);
  expect(await refused(client, "gitDiffToRemote", {})).toBe("-32600 Invalid request: missing field `cwd`");
});
