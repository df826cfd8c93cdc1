import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ask, openHttpWorld, type Answer, type AskOptions } from "../../test/http-world.ts";

const LINK = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

interface PageWorld extends AsyncDisposable {
  /** Without a token. */
  ask(path: string, options?: AskOptions): Promise<Answer>;
}

async function openPageWorld(files: Readonly<Record<string, string>> = BUILT): Promise<PageWorld> {
  const root = await mkdtemp(join(tmpdir(), "heddle-page-"));
  const folder = join(root, "dashboard");
  await mkdir(join(folder, "assets"), { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  await writeFile(join(root, "secret.txt"), "secret");
  await symlink(join(root, "secret.txt"), join(folder, "assets", "link.txt"));
  const world = await openHttpWorld({ pageFolder: folder });
  return {
    ask: (path, options = {}) => ask(world.port, path, options),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true });
    },
  };
}

const SCRIPT = "/assets/main-C0ffee12.js";
const BUILT = {
  "index.html": "<!doctype html><title>Heddle</title>",
  "manifest.webmanifest": "{}",
  "assets/main-C0ffee12.js": "plain script",
  "assets/main-C0ffee12.js.br": "brotli bytes",
  "assets/main-C0ffee12.js.gz": "gzip bytes",
};

test("the page and its places come without a token, with a policy that allows its own files alone", async () => {
  await using world = await openPageWorld();
  const index = await world.ask("/");
  expect(index).toMatchObject({ status: 200, text: BUILT["index.html"] });
  expect(index.headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
      "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
      "require-trusted-types-for 'script'; trusted-types heddle",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  const html = { accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8" };
  for (const place of ["/now", "/tasks/task_1?attempt=2", "/threads/x", "/login"]) {
    expect((await world.ask(place, { headers: html })).text).toBe(BUILT["index.html"]);
  }
  expect((await world.ask("/manifest.webmanifest")).headers["content-type"]).toBe(
    "application/manifest+json; charset=utf-8",
  );
});

test("a file with a hash in its name is kept for ever, and sent as small as the browser takes it", async () => {
  await using world = await openPageWorld();
  const get = (encodings: string, headers = {}) =>
    world.ask(SCRIPT, { headers: { "accept-encoding": encodings, ...headers } });
  expect(await get("gzip, deflate, br, zstd")).toMatchObject({
    status: 200,
    text: "brotli bytes",
    headers: {
      "content-encoding": "br",
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      vary: "accept-encoding",
    },
  });
  expect(await get("gzip, br;q=0")).toMatchObject({ text: "gzip bytes", headers: { "content-encoding": "gzip" } });
  const plain = await get("identity");
  expect(plain).toMatchObject({ text: "plain script" });
  expect(plain.headers).not.toHaveProperty("content-encoding");
  const { etag } = plain.headers;
  expect(await get("identity", { "if-none-match": `"other", W/${etag}` })).toMatchObject({ status: 304, text: "" });
  expect((await get("br", { "if-none-match": etag })).status).toBe(200);
  const head = await world.ask(SCRIPT, { method: "HEAD" });
  expect(head).toMatchObject({ status: 200, text: "", headers: { "content-length": "12" } });
});

test("nothing outside the folder is sent, nor what only the build uses", async () => {
  await using world = await openPageWorld();
  for (const path of [
    "/../secret.txt",
    "/assets/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/assets/..%5c..%5csecret.txt",
    "//secret.txt",
    "/assets/link.txt",
    "/.hidden.txt",
    "/assets/none.js",
  ]) {
    const answer = await world.ask(path);
    expect([path, answer.status, answer.text]).toEqual([path, 404, "there is no such file\n"]);
  }
  for (const path of [`${SCRIPT}.br`, "/assets", "/etc/passwd"]) expect((await world.ask(path)).status).toBe(401);
});

test("a link on a page elsewhere opens the page, and still cannot load its files or call a route", async () => {
  await using world = await openPageWorld();
  expect((await world.ask("/tasks/task_1", { headers: { ...LINK, accept: "text/html" } })).status).toBe(200);
  const from = (headers: Readonly<Record<string, string>>, path = "/") => world.ask(path, { headers });
  const elsewhere = { "sec-fetch-site": "cross-site" };
  for (const refused of [
    from({ ...LINK, "sec-fetch-dest": "iframe" }),
    from({ ...elsewhere, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" }, SCRIPT),
    from({ ...LINK, origin: "http://evil.example" }),
    from(LINK, "/api/server"),
    from({ ...LINK, accept: "text/html" }, "/api/nothing"),
  ]) {
    expect((await refused).status).toBe(403);
  }
  expect((await from({ ...LINK, host: "evil.example" })).status).toBe(421);
  expect((await world.ask("/", { method: "POST", headers: LINK, body: {} })).status).toBe(403);
});

test("a page that is not built says how to build it, and one that was left out is not there", async () => {
  await using world = await openPageWorld({});
  const missing = await world.ask("/now", { headers: { accept: "text/html" } });
  expect(missing).toMatchObject({ status: 503, headers: { "content-type": "text/html; charset=utf-8" } });
  expect(missing.text).toContain("npm run build");
  await using without = await openHttpWorld();
  expect((await ask(without.port, "/", {})).status).toBe(401);
});
