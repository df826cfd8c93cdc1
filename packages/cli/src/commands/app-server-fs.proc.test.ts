import { chmod, mkdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { at, KEY, list, serve, startThread, type Client } from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

async function opened(world: World) {
  const served = serve([], { world, env: KEY });
  await served.client.initialize();
  return served;
}

test("fs/readFile, fs/writeFile, fs/getMetadata and fs/readDirectory answer as the original does", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const ws = world.workspace;
  expect(await client.call("fs/writeFile", { path: `${ws}/a.bin`, dataBase64: "AP8K" })).toEqual({});
  expect([...(await readFile(`${ws}/a.bin`))]).toEqual([0, 255, 10]);
  expect(await client.call("fs/readFile", { path: `${ws}/sub/../a.bin` })).toEqual({ dataBase64: "AP8K" });
  await symlink("a.bin", `${ws}/link`);
  await symlink("nowhere", `${ws}/dangling`);
  const facts = await client.call("fs/getMetadata", { path: `${ws}/link` });
  expect(facts).toMatchObject({ isDirectory: false, isFile: true, isSymlink: true });
  expect(at(facts, "modifiedAtMs")).toBeCloseTo((await stat(`${ws}/a.bin`)).mtimeMs, -1);
  expect(await client.call("fs/getMetadata", { path: ws })).toMatchObject({ isDirectory: true, isSymlink: false });
  expect(await client.call("fs/getMetadata", { path: "/" })).toMatchObject({ isDirectory: true });
  const { entries } = (await client.call("fs/readDirectory", { path: ws })) as { entries: { fileName: string }[] };
  expect(entries.toSorted((a, b) => (a.fileName < b.fileName ? -1 : 1))).toEqual([
    { fileName: ".git", isDirectory: true, isFile: false },
    { fileName: "a.bin", isDirectory: false, isFile: true },
    { fileName: "link", isDirectory: false, isFile: true },
  ]);
});

test("fs/createDirectory, fs/copy and fs/remove answer as the original does", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const ws = world.workspace;
  expect(await client.call("fs/createDirectory", { path: `${ws}/d/e` })).toEqual({});
  expect(await client.call("fs/createDirectory", { path: `${ws}/d/e` })).toEqual({});
  expect(await client.call("fs/createDirectory", { path: ws })).toEqual({});
  await writeFile(`${ws}/d/tool.sh`, "echo");
  await chmod(`${ws}/d/tool.sh`, 0o755);
  await symlink("tool.sh", `${ws}/d/e/link`);
  expect(await client.call("fs/copy", { sourcePath: `${ws}/d`, destinationPath: `${ws}/d2`, recursive: true })).toEqual(
    {},
  );
  expect((await stat(`${ws}/d2/tool.sh`)).mode & 0o777).toBe(0o755);
  expect(await readlink(`${ws}/d2/e/link`)).toBe("tool.sh");
  await client.call("fs/copy", { sourcePath: `${ws}/d/tool.sh`, destinationPath: `${ws}/copy.sh` });
  expect(await readFile(`${ws}/copy.sh`, "utf8")).toBe("echo");
  expect(await client.call("fs/remove", { path: `${ws}/d2` })).toEqual({});
  await expect(stat(`${ws}/d2`)).rejects.toThrow("ENOENT");
  expect(await client.call("fs/remove", { path: `${ws}/d2` })).toEqual({});
  // A link goes, what it leads to stays.
  await symlink(`${ws}/d`, `${ws}/to-d`);
  await client.call("fs/remove", { path: `${ws}/to-d` });
  expect((await stat(`${ws}/d/tool.sh`)).isFile()).toBe(true);
});

test("fs/*: wrong params and failures of the disk have the words and codes of the original", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const ws = world.workspace;
  await world.file("workspace/a.txt", "a");
  await world.file("workspace/full/x", "x");
  const none = "-32603 No such file or directory (os error 2)";
  const cases: readonly (readonly [method: string, params: unknown, said: string])[] = [
    ["fs/readFile", {}, "-32600 Invalid request: missing field `path`"],
    ["fs/readFile", { path: "a.txt" }, "-32600 Invalid request: AbsolutePathBuf deserialized without a base path"],
    ["fs/readFile", { path: `${ws}/none` }, none],
    ["fs/readFile", { path: ws }, `-32600 path \`${ws}\` is not a file`],
    ["fs/getMetadata", { path: `${ws}/none` }, none],
    ["fs/readDirectory", { path: `${ws}/a.txt` }, "-32603 Not a directory (os error 20)"],
    ["fs/writeFile", { path: `${ws}/a.txt` }, "-32600 Invalid request: missing field `dataBase64`"],
    [
      "fs/writeFile",
      { path: `${ws}/b`, dataBase64: "%%%" },
      "-32600 fs/writeFile requires valid base64 dataBase64: Invalid symbol 37, offset 0.",
    ],
    ["fs/writeFile", { path: `${ws}/no/b`, dataBase64: "YQ==" }, none],
    ["fs/createDirectory", { path: `${ws}/full`, recursive: false }, "-32603 File exists (os error 17)"],
    ["fs/createDirectory", { path: `${ws}/q/e`, recursive: false }, none],
    ["fs/remove", { path: `${ws}/none`, force: false }, none],
    ["fs/remove", { path: `${ws}/full`, recursive: false }, "-32603 Directory not empty (os error 39)"],
    [
      "fs/copy",
      { sourcePath: `${ws}/full`, destinationPath: `${ws}/f2` },
      "-32600 fs/copy requires recursive: true when sourcePath is a directory",
    ],
    [
      "fs/copy",
      { sourcePath: `${ws}/full`, destinationPath: `${ws}/full/in`, recursive: true },
      "-32600 fs/copy cannot copy a directory to itself or one of its descendants",
    ],
    ["fs/copy", { sourcePath: `${ws}/none`, destinationPath: `${ws}/x` }, none],
    [
      "fs/watch",
      { path: "x", watchId: "w" },
      "-32600 Invalid request: AbsolutePathBuf deserialized without a base path",
    ],
  ];
  for (const [method, params, said] of cases) expect(await refused(client, method, params)).toBe(said);
});

test("S29 S37 fs/*: Heddle's own home is not there, by whatever name it is reached", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const [ws, home] = [world.workspace, world.home];
  await world.file("home/secret", "key");
  await symlink(home, `${ws}/way`);
  await symlink(`${home}/secret`, `${ws}/straight`);
  for (const file of [`${home}/secret`, `${ws}/../home/secret`, `${ws}/way/secret`, `${ws}/straight`]) {
    expect(await refused(client, "fs/readFile", { path: file })).toMatch(/^-32600 .* is not available here$/);
    expect(await refused(client, "fs/writeFile", { path: file, dataBase64: "" })).toMatch(/^-32600 /);
    expect(await refused(client, "fs/copy", { sourcePath: file, destinationPath: `${ws}/stolen` })).toMatch(/^-32600 /);
    expect(await refused(client, "fs/watch", { path: file, watchId: file })).toMatch(/^-32600 /);
  }
  expect(await refused(client, "fs/readDirectory", { path: `${ws}/way` })).toMatch(/^-32600 /);
  const copied = { sourcePath: world.root, destinationPath: `${ws}/all`, recursive: true };
  expect(await refused(client, "fs/copy", copied)).toMatch(/^-32600 /);
  expect(await readFile(`${home}/secret`, "utf8")).toBe("key");
  expect(await refused(client, "fs/readFile", { path: "/proc/self/environ" })).toMatch(/^-32600 .*kernel/);
});

test("S29 S30 fs/*: nothing is written outside the folders of the server and of the client's threads", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "outside");
  await mkdir(`${outside}/kept`, { recursive: true });
  await writeFile(`${outside}/kept/file`, "as it was");
  await using served = await opened(world);
  const { client } = served;
  const ws = world.workspace;
  await symlink(outside, `${ws}/way`);
  await symlink(`${outside}/new`, `${ws}/dangling`);
  const writes: readonly (readonly [method: string, params: unknown])[] = [
    ["fs/writeFile", { path: `${outside}/x`, dataBase64: "" }],
    ["fs/writeFile", { path: `${ws}/../outside/x`, dataBase64: "" }],
    ["fs/writeFile", { path: `${ws}/way/x`, dataBase64: "" }],
    ["fs/writeFile", { path: `${ws}/dangling`, dataBase64: "" }],
    ["fs/createDirectory", { path: `${ws}/way/x` }],
    ["fs/remove", { path: `${ws}/way/kept` }],
    ["fs/remove", { path: `${outside}/kept` }],
    ["fs/remove", { path: ws }],
    ["fs/remove", { path: "/" }],
    ["fs/copy", { sourcePath: `${outside}/kept`, destinationPath: `${ws}/way/copy`, recursive: true }],
    ["fs/copy", { sourcePath: `${outside}/kept/file`, destinationPath: `${ws}/way/copy` }],
  ];
  for (const [method, params] of writes) {
    expect(await refused(client, method, params), JSON.stringify(params)).toMatch(/^-32600 /);
  }
  expect(await client.call("fs/readDirectory", { path: outside })).toEqual({
    entries: [{ fileName: "kept", isDirectory: true, isFile: false }],
  });
  expect(await readFile(`${outside}/kept/file`, "utf8")).toBe("as it was");
});

test("fs/writeFile: a thread opens its workspace to the client that works with it", async () => {
  await using world = await openWorld();
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "http://127.0.0.1:9/v1"\n`,
  );
  const other = path.join(world.root, "other");
  await mkdir(other);
  await using served = await opened(world);
  const { client } = served;
  const params = { path: `${other}/x`, dataBase64: base64("x") };
  expect(await refused(client, "fs/writeFile", params)).toBe(
    `-32600 ${other}/x is outside the folders that may be written`,
  );
  const threadId = await startThread(client, { cwd: other });
  expect(await client.call("fs/writeFile", params)).toEqual({});
  await client.call("thread/unsubscribe", { threadId });
  expect(await refused(client, "fs/writeFile", params)).toMatch(/^-32600 /);
});

test("fs/writeFile: --write-root names the folders of the server instead of the one it was started in", async () => {
  await using world = await openWorld();
  for (const name of ["one", "two"]) await mkdir(path.join(world.root, name));
  await using served = serve(["--write-root", "../one", "--write-root", path.join(world.root, "two")], {
    world,
    env: KEY,
  });
  const { client } = served;
  await client.initialize();
  for (const name of ["one", "two"]) {
    const params = { path: path.join(world.root, name, "x"), dataBase64: base64(name) };
    expect(await client.call("fs/writeFile", params)).toEqual({});
  }
  expect(await refused(client, "fs/writeFile", { path: `${world.workspace}/x`, dataBase64: "" })).toBe(
    `-32600 ${world.workspace}/x is outside the folders that may be written`,
  );
});

test("fs/*: what programs outside Heddle act on is not written, copied over or removed", async () => {
  await using world = await openWorld();
  await mkdir(path.join(world.root, "evil/sub/.git/hooks"), { recursive: true });
  await world.file("evil/sub/.git/hooks/post-commit", "#!/bin/sh\n");
  await world.file("workspace/.git/hooks/pre-commit", "#!/bin/sh\n");
  await using served = await opened(world);
  const { client } = served;
  const ws = world.workspace;
  const evil = path.join(world.root, "evil");
  const writes: readonly (readonly [method: string, params: unknown])[] = [
    ["fs/writeFile", { path: `${ws}/.git/hooks/post-commit`, dataBase64: "" }],
    ["fs/createDirectory", { path: `${ws}/.GIT/hooks` }],
    ["fs/writeFile", { path: `${ws}/.envrc`, dataBase64: "" }],
    ["fs/createDirectory", { path: `${ws}/deep/.vscode` }],
    ["fs/remove", { path: `${ws}/.git/hooks/pre-commit` }],
    ["fs/remove", { path: `${ws}/.git` }],
    ["fs/copy", { sourcePath: `${evil}/sub/.git`, destinationPath: `${ws}/.git`, recursive: true }],
    ["fs/copy", { sourcePath: evil, destinationPath: `${ws}/harmless`, recursive: true }],
    ["fs/copy", { sourcePath: `${evil}/sub/.git/hooks/post-commit`, destinationPath: `${ws}/.git/hooks/post-commit` }],
  ];
  for (const [method, params] of writes) {
    expect(await refused(client, method, params), JSON.stringify(params)).toMatch(/^-32600 .* is protected /);
  }
  expect(list(await client.call("fs/readDirectory", { path: `${ws}/.git/hooks` }), "entries")).toHaveLength(1);
  await expect(stat(`${ws}/harmless/sub/.git`)).rejects.toThrow("ENOENT");
});

test("fs/watch tells what changes in a folder or at a path until fs/unwatch, and only to its connection", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const ws = world.workspace;
  await mkdir(`${ws}/sub`);
  expect(await client.call("fs/watch", { path: ws, watchId: "w" })).toEqual({ path: ws });
  expect(await refused(client, "fs/watch", { path: ws, watchId: "w" })).toBe("-32600 watchId already exists: w");
  expect(await client.call("fs/watch", { path: `${ws}/sub/later`, watchId: "later" })).toEqual({
    path: `${ws}/sub/later`,
  });
  await writeFile(`${ws}/new.txt`, "1");
  const told = await client.waitFor(({ method, params }) => method === "fs/changed" && at(params, "watchId") === "w");
  expect(at(told, "params.changedPaths")).toEqual([`${ws}/new.txt`]);
  await writeFile(`${ws}/sub/unheard`, "1");
  await writeFile(`${ws}/sub/later`, "1");
  const later = await client.waitFor(({ params }) => at(params, "watchId") === "later");
  expect(at(later, "params.changedPaths")).toEqual([`${ws}/sub/later`]);
  expect(await client.call("fs/unwatch", { watchId: "w" })).toEqual({});
  expect(await client.call("fs/unwatch", { watchId: "never" })).toEqual({});
  const from = client.received.length;
  await writeFile(`${ws}/another.txt`, "1");
  await writeFile(`${ws}/sub/later`, "2");
  await client.waitFor(({ params }) => at(params, "watchId") === "later", from);
  expect(client.received.slice(from).some(({ params }) => at(params, "watchId") === "w")).toBe(false);
});
