import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { startModelServer } from "@heddle/models/testing";
import { WIRE_ANSWERS, WIRE_NOTIFICATIONS } from "@heddle/dialects/codex-app-server/wire";
import { expect, test } from "vitest";
import { command, KEY, pointAt, runTurn, serve, startThread } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

const TSC = path.join(import.meta.dirname, "../../../../node_modules/typescript/bin/tsc");

test("app-server generate-ts and generate-json-schema write a file a type; the types compile", async () => {
  await using world = await openWorld();
  const ts = path.join(world.root, "ts");
  expect(await run(["app-server", "generate-ts", "--out", ts, "--experimental"], { world })).toMatchObject({ code: 0 });
  const files = ["index.ts", "ClientRequest.ts", "ServerNotification.ts"].map((name) => path.join(ts, name));
  const flags = ["--ignoreConfig", "--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler"];
  await promisify(execFile)(process.execPath, [TSC, ...flags, "--types", "", ...files]);
  const json = path.join(world.root, "json");
  expect(await run(["app-server", "generate-json-schema", "--out", json], { world })).toMatchObject({ code: 0 });
  expect(await readdir(json)).toContain("codex_app_server_protocol.schemas.json");
  expect(await readdir(path.join(json, "v2"))).toContain("TurnStartParams.json");
  expect(await run(["app-server", "generate-ts"], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--out DIR") as string,
  });
});

test("what a server says in a turn is what its types say", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ reasoning: "hm", calls: [command("echo hi")] }, { text: "done" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const started = await client.call("thread/start", { approvalPolicy: "never" });
  expect(WIRE_ANSWERS["thread/start"]?.safeParse(started).error).toBeUndefined();
  const threadId = await startThread(client, { approvalPolicy: "never" });
  await runTurn(client, threadId, "go");
  for (const method of ["thread/list", "thread/turns/list", "thread/items/list", "thread/goal/get"]) {
    const answer = await client.call(method, { threadId });
    expect([method, WIRE_ANSWERS[method]?.safeParse(answer).error]).toEqual([method, undefined]);
  }
  const told = client.received.filter(
    ({ method }) => method !== undefined && method !== "remoteControl/status/changed",
  );
  expect(told.length).toBeGreaterThan(10);
  for (const { method = "", params } of told) {
    expect([
      method,
      WIRE_NOTIFICATIONS[method] === undefined,
      WIRE_NOTIFICATIONS[method]?.safeParse(params).error,
    ]).toEqual([method, false, undefined]);
  }
});
