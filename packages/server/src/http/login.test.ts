import { readFile, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LoginAnswer, LoginCode, TokenList } from "@heddle/protocol/http";
import { expect, test } from "vitest";
import { ask, openHttpWorld, type HttpWorld, type Role } from "../../test/http-world.ts";
import { follow } from "../../test/sse-client.ts";
import { BROWSER_IDLE_MS } from "./tokens.ts";

async function codeOf(world: HttpWorld, role: Role): Promise<LoginCode> {
  const answer = await world.ask("/api/login/codes", { method: "POST", token: world.tokens[role], body: {} });
  expect(answer.status).toBe(201);
  return answer.json as LoginCode;
}

const show = ({ port }: HttpWorld, code: string) =>
  ask(port, "/api/login", { method: "POST", headers: { "user-agent": "a browser" }, body: { code } });

async function logIn(world: HttpWorld, role: Role): Promise<LoginAnswer> {
  const answer = await show(world, (await codeOf(world, role)).code);
  expect(answer.status).toBe(200);
  return answer.json as LoginAnswer;
}

const server = (world: HttpWorld, token: string) => world.ask("/api/server", { token });
const entriesOf = async (world: HttpWorld) => ((await world.ask("/api/tokens")).json as TokenList).data;

test("a code becomes a token once, which acts as whoever the code was made for", async () => {
  await using world = await openHttpWorld();
  const { code, path } = await codeOf(world, "user");
  expect(path).toBe(`/login#${code}`);
  const first = await show(world, code);
  expect(first).toMatchObject({ status: 200, json: { principal: { name: "una", role: "user" } } });
  expect(await show(world, code)).toMatchObject({ status: 401, json: { error: { code: "door.unauthorized" } } });
  const { token, name } = first.json as LoginAnswer;
  expect((await server(world, token)).json).toMatchObject({ principal: { name: "una", role: "user" } });
  expect((await world.ask("/api/accounts", { token })).status).toBe(403);
  const threadId = ((await world.ask("/api/threads", { method: "POST", token, body: {} })).json as { id: string }).id;
  expect((await world.heddle.journal.read({ stream: threadId, after: 0, limit: 1 }))[0]?.author).toBe("user:una");
  expect((await entriesOf(world)).find((entry) => entry.name === name)).toMatchObject({
    kind: "browser",
    of: "una",
    role: "user",
    agent: "a browser",
  });
});

test("the token itself is on no disk, and its file is private", async () => {
  await using world = await openHttpWorld();
  const { token, name } = await logIn(world, "owner");
  const folder = join(world.home, "tokens", "browsers");
  expect(await readdir(folder)).toEqual([`${name}.json`]);
  expect(await readFile(join(folder, `${name}.json`), "utf8")).not.toContain(token);
});

test("a browser that logs out, or whose login is revoked, is out, and its streams end", async () => {
  await using world = await openHttpWorld({ heartbeatMs: 50 });
  const [here, there] = [await logIn(world, "owner"), await logIn(world, "owner")];
  using stream = await follow(`${world.url}/api/events`, here.token);
  await stream.waitFor(({ event }) => event === "caughtUp");
  const out = await world.ask("/api/logout", { method: "POST", token: here.token, body: {} });
  expect(out.status).toBe(200);
  expect((await stream.waitFor(({ event }) => event === "end")).data).toMatchObject({ reason: "revoked" });
  await expect.poll(async () => (await server(world, here.token)).status).toBe(401);
  expect((await server(world, there.token)).status).toBe(200);
  expect((await world.ask(`/api/tokens/${there.name}`, { method: "DELETE" })).status).toBe(200);
  await expect.poll(async () => (await server(world, there.token)).status).toBe(401);
  expect((await server(world, world.tokens.owner)).status).toBe(200);
});

test("with a token go the browsers that logged in by it, and the codes that were made with it", async () => {
  await using world = await openHttpWorld();
  const { token } = await logIn(world, "viewer");
  const { code } = await codeOf(world, "viewer");
  expect((await world.ask("/api/tokens/vic", { method: "DELETE" })).status).toBe(200);
  await expect.poll(async () => (await server(world, token)).status).toBe(401);
  expect((await show(world, code)).status).toBe(401);
  expect((await world.ask("/api/tokens", { method: "POST", body: { name: "vic", role: "owner" } })).status).toBe(201);
  expect((await server(world, token)).status).toBe(401);
});

test("a browser that was not used for half a day has to log in again", async () => {
  await using world = await openHttpWorld();
  const { token, name } = await logIn(world, "owner");
  const file = join(world.home, "tokens", "browsers", `${name}.json`);
  const at = (agoMs: number): Promise<void> => utimes(file, (Date.now() - agoMs) / 1000, (Date.now() - agoMs) / 1000);
  await at(BROWSER_IDLE_MS - 60_000);
  // Using it makes it fresh.
  await expect
    .poll(async () => {
      expect((await server(world, token)).status).toBe(200);
      return (await entriesOf(world)).find((entry) => entry.name === name)?.lastUsedAt;
    })
    .toBeGreaterThan(Date.now() - 60_000);
  await at(BROWSER_IDLE_MS);
  await expect.poll(async () => (await server(world, token)).status).toBe(401);
  await logIn(world, "owner");
  expect(await readdir(join(world.home, "tokens", "browsers"))).not.toContain(`${name}.json`);
});

test("guessed codes are counted, and a right one is taken among them", async () => {
  await using world = await openHttpWorld();
  const { code } = await codeOf(world, "owner");
  const statuses: number[] = [];
  for (let count = 0; count < 22; count += 1) statuses.push((await show(world, `guess-${count}`)).status);
  expect(new Set(statuses)).toEqual(new Set([401, 429]));
  expect((await show(world, code)).status).toBe(200);
});

test("a login that cannot be read lets nobody in but the owner", async () => {
  const lines: string[] = [];
  await using world = await openHttpWorld({ log: (line) => lines.push(line) });
  const { token, name } = await logIn(world, "owner");
  await writeFile(join(world.home, "tokens", "browsers", `${name}.json`), "{}");
  await expect.poll(async () => (await server(world, token)).status).toBe(401);
  expect((await server(world, world.tokens.owner)).status).toBe(200);
});

test("a token that is made again is another one: nothing of the old one of its name and role comes back", async () => {
  await using world = await openHttpWorld({ heartbeatMs: 3_600_000 });
  const { token } = await logIn(world, "viewer");
  const { code } = await codeOf(world, "viewer");
  expect((await world.ask("/api/tokens/vic", { method: "DELETE" })).status).toBe(200);
  expect((await world.ask("/api/tokens", { method: "POST", body: { name: "vic", role: "viewer" } })).status).toBe(201);
  expect((await server(world, token)).status).toBe(401);
  expect((await show(world, code)).status).toBe(401);
  expect((await entriesOf(world)).filter(({ kind }) => kind === "browser")).toEqual([]);
});

test("one caller cannot use up the codes and logins of the others", async () => {
  await using world = await openHttpWorld();
  const viewer = { method: "POST", token: world.tokens.viewer, body: {} };
  const codes: string[] = [];
  while (codes.length < 100) {
    const { status, json } = await world.ask("/api/login/codes", viewer);
    if (status === 429) break;
    codes.push((json as LoginCode).code);
  }
  expect(codes.length).toBeLessThan(50);
  for (let logins = 0; ; logins += 1) {
    const code = codes.pop() ?? (await codeOf(world, "viewer")).code;
    const { status } = await show(world, code);
    if (status === 429) break;
    expect(logins).toBeLessThan(100);
  }
  await logIn(world, "owner");
  await logIn(world, "user");
});

test("two that show one code at the same moment: one comes in", async () => {
  await using world = await openHttpWorld();
  const { code } = await codeOf(world, "owner");
  const answers = await Promise.all(Array.from({ length: 4 }, () => show(world, code)));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
});
