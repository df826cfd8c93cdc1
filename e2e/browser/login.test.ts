/** Who comes in, and where what lets them in is kept. */
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loginAddress, openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'",
  "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "require-trusted-types-for 'script'; trusted-types heddle",
].join("; ");

test("every document is sent with the one policy, and other origins may neither read, frame nor refer to it", async () => {
  for (const at of ["/", "/now", "/tasks/task_1?tab=raw", "/login"]) {
    const { headers } = await fetch(`${stage.server.url}${at}`, { headers: { accept: "text/html" } });
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-security-policy": POLICY,
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
  }
});

test("a code logs in once and is in no address, and the token is in this origin's storage alone", async () => {
  await using seat = await stage.sit();
  const { page, context } = seat;
  const kept = await page.evaluate(() => JSON.stringify(localStorage));
  const { "heddle.token": token = "" } = JSON.parse(kept) as Record<string, string>;
  expect(token.length).toBeGreaterThan(20);
  expect(token).not.toBe(stage.server.token);
  expect(kept).not.toContain(stage.server.token);
  expect(await page.evaluate(() => [location.hash, document.cookie, JSON.stringify(sessionStorage)])).toEqual([
    "",
    "",
    "{}",
  ]);
  expect(await context.cookies()).toEqual([]);
  // Back leads to no address with a code in it.
  const addresses = await page.context().newCDPSession(page);
  const { entries } = await addresses.send("Page.getNavigationHistory");
  expect(entries.map(({ url }) => url).filter((url) => url.includes("#"))).toEqual([]);
});

test("a code that was used shows why it does not work, and the way to another one", async () => {
  const address = await loginAddress(stage.server);
  const context = await stage.browser.newContext();
  const first = await context.newPage();
  await first.goto(address);
  await first.waitForURL(/\/now$/);
  await context.close();
  const other = await stage.browser.newContext();
  const page = await other.newPage();
  await page.goto(address);
  const told = page.getByRole("alert");
  await told.waitFor();
  expect(await told.textContent()).toMatch(/heddle dashboard/);
  expect(page.url()).toBe(`${stage.server.url}/login`);
  await other.close();
});

test("a pasted token logs in and is kept nowhere; a wrong one is refused in words", async () => {
  const context = await stage.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${stage.server.url}/login`);
  const field = page.getByLabel("Token");
  await field.fill("not-a-token");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").textContent()).toMatch(/not known/i);
  await field.fill(stage.server.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(/\/now$/);
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(stage.server.token);
  await context.close();
});

test("another port of this machine is sent no token, no cookie and no referrer, and cannot read or frame the page", async () => {
  const heard: string[] = [];
  const other = createServer((request, response) => {
    heard.push(JSON.stringify(request.headers));
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>other</title><h1>other</h1>");
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const address = other.address();
  const origin = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  const { context, page } = await stage.sit();
  try {
    const token = await page.evaluate(() => localStorage.getItem("heddle.token") ?? "");
    const stranger = await context.newPage();
    await page.goto(origin);
    await stranger.goto(origin);
    expect(await stranger.evaluate(() => [localStorage.length, document.cookie, document.referrer])).toEqual([
      0,
      "",
      "",
    ]);
    expect(heard.join("\n")).not.toContain(token);
    expect(heard.join("\n")).not.toMatch(/referer|cookie|authorization/i);
    const outcome = await stranger.evaluate(
      async ({ url, bearer }) => {
        const call = (path: string, init: RequestInit): Promise<string> =>
          fetch(`${url}${path}`, init).then(
            ({ status }) => `answered ${status}`,
            () => "refused",
          );
        return [
          await call("/api/state", {}),
          await call("/api/state", { headers: { authorization: `Bearer ${bearer}` } }),
          await call("/now", {}),
        ];
      },
      { url: stage.server.url, bearer: token },
    );
    expect(outcome).toEqual(["refused", "refused", "refused"]);
    // A call that needs no answer to do harm is refused too.
    await stranger.evaluate(
      (url) =>
        fetch(`${url}/api/tasks`, { method: "POST", mode: "no-cors", body: '{"spec":{"goal":"x"}}' }).catch(String),
      stage.server.url,
    );
    expect((await stage.server.client.tasks.list()).data).toEqual([]);
    // Who opens it has no hold of it.
    const opened = context.waitForEvent("page");
    await stranger.evaluate((url) => {
      const link = document.createElement("a");
      Object.assign(link, { href: `${url}/now`, target: "_blank", rel: "opener", textContent: "open it" });
      document.body.append(link);
    }, stage.server.url);
    await stranger.getByText("open it").click();
    const popup = await opened;
    await popup.getByRole("heading", { name: "Now" }).waitFor();
    expect(await popup.evaluate(() => opener)).toBe(null);
    await popup.close();
    const framed = stranger.waitForEvent("frameattached");
    await stranger.evaluate((url) => {
      const frame = document.createElement("iframe");
      frame.src = url;
      document.body.append(frame);
    }, stage.server.url);
    await framed;
    await expect.poll(() => stranger.frames().map((frame) => frame.url())).toContain("chrome-error://chromewebdata/");
  } finally {
    await context.close();
    other.closeAllConnections();
    other.close();
  }
});

test("a login that is revoked leads to the login page, and from there to the same address", async () => {
  const at = "/tasks?view=board&q=none";
  await using seat = await stage.sit({ at });
  const { page } = seat;
  const { access } = stage.server.client;
  const browsers = (await access.listTokens()).data.filter(({ kind }) => kind === "browser");
  for (const { name } of browsers) await access.revokeToken(name);
  await page.getByLabel("Token").waitFor();
  expect(await page.getByRole("alert").textContent()).not.toBe("");
  await page.getByLabel("Token").fill(stage.server.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Tasks" }).waitFor();
  expect(page.url()).toBe(`${stage.server.url}${at}`);
  expect(await page.getByLabel("Filter by name").inputValue()).toBe("none");
});

test("the token of a browser is in no file of the server and in nothing that it printed", async () => {
  await using seat = await stage.sit({ at: "/settings" });
  const token = await seat.page.evaluate(() => localStorage.getItem("heddle.token") ?? "");
  expect(token.length).toBeGreaterThan(20);
  const { ended } = stage.server;
  await stage.restart();
  const { stdout, stderr } = await ended;
  expect(`${stdout}${stderr}`).not.toContain(token);
  const { home } = stage.world;
  const files = (await readdir(home, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const holding: string[] = [];
  for (const { parentPath, name } of files)
    if ((await readFile(path.join(parentPath, name))).includes(token)) holding.push(name);
  expect([files.length > 0, holding]).toEqual([true, []]);
});
