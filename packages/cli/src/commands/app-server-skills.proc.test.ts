import { readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, list, pointAt, runTurn, serve, startThread, type Client } from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

async function skill(world: World, folder: string, name: string): Promise<string> {
  return world.file(`${folder}/${name}/SKILL.md`, `---\nname: ${name}\ndescription: How to ${name}.\n---\nDo it.\n`);
}

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

async function listed(client: Client): Promise<readonly (readonly [unknown, unknown])[]> {
  const skills = list(await client.call("skills/list", {}), "data.0.skills");
  return skills.map((found) => [at(found, "name"), at(found, "enabled")] as const);
}

test("skills/extraRoots/set and skills/config/write count for the list, for turns and for later runs", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
  await pointAt(world, model.url);
  await skill(world, "workspace/.agents/skills", "near");
  const file = await skill(world, "elsewhere", "far");
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  expect(await listed(client)).toEqual([["near", true]]);
  const from = client.received.length;
  expect(await client.call("skills/extraRoots/set", { extraRoots: [path.join(world.root, "elsewhere")] })).toEqual({});
  expect((await client.note("skills/changed", from)).params).toEqual({});
  expect(await client.call("skills/config/write", { name: "near", enabled: false })).toEqual({
    effectiveEnabled: false,
  });
  expect(await listed(client)).toEqual([
    ["far", true],
    ["near", false],
  ]);
  await runTurn(client, await startThread(client), "go");
  const asked = JSON.stringify(model.requests.at(-1)?.body);
  expect(asked).toContain("How to far.");
  expect(asked).not.toContain("How to near.");
  expect(await readFile(path.join(world.home, "config.toml"), "utf8")).toContain('disabled_skills = [ "near" ]');
  const { code } = await run(["exec", "again"], { world, env: KEY });
  expect(code).toBe(0);
  expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain("How to near.");
  await client.call("skills/config/write", { path: file, enabled: false });
  await client.call("skills/config/write", { name: "near", enabled: true });
  expect(await listed(client)).toEqual([
    ["far", false],
    ["near", true],
  ]);
});

test("skills/extraRoots/set and skills/config/write refuse in the words of the original", async () => {
  await using world = await openWorld();
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  expect(await refused(client, "skills/extraRoots/set", { extraRoots: ["skills"] })).toBe(
    "-32600 Invalid request: AbsolutePathBuf deserialized without a base path",
  );
  expect(await refused(client, "skills/extraRoots/set", {})).toBe("-32600 Invalid request: missing field `extraRoots`");
  const one = "-32602 skills/config/write requires exactly one of path or name";
  expect(await refused(client, "skills/config/write", { enabled: true })).toBe(one);
  expect(await refused(client, "skills/config/write", { name: "a", path: "/a/b", enabled: false })).toBe(one);
  expect(await refused(client, "skills/config/write", { name: "a" })).toBe(
    "-32600 Invalid request: missing field `enabled`",
  );
});
