import { expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";

test("heddle dashboard prints an address that logs one browser in, and says what to do where there is none", async () => {
  await using world = await openWorld();
  const none = await run(["dashboard"], { world });
  expect(none).toMatchObject({ code: 2, stdout: "" });
  expect(none.stderr).toContain("start one with: heddle serve");
  {
    await using served = await startServe(world);
    const { stdout, code } = await run(["dashboard"], { world });
    expect((await fetch(`${served.url}/`)).status).toBe(200);
    expect(code).toBe(0);
    const address = new URL(stdout.trim());
    expect(`${address.origin}${address.pathname}`).toBe(`${served.url}/login`);
    const body = { code: address.hash.slice(1) };
    const login = await served.call("POST", "/api/login", body);
    expect(login).toMatchObject({ status: 200, json: { principal: { name: "owner", role: "owner" } } });
    expect((await served.call("POST", "/api/login", body)).status).toBe(401);
    expect((await run(["token", "list"], { world })).stdout).toContain("browser of owner");
  }
  await using served = await startServe(world, { args: ["--no-ui"] });
  expect((await fetch(`${served.url}/`)).status).toBe(401);
  const left = await run(["dashboard"], { world });
  expect(left.stderr).toContain("serves no dashboard; start it without --no-ui: heddle serve");
});
