import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, command, connectTo, KEY, pointAt, startThread } from "../../test/app-server-client.ts";
import { openWorld, run, start } from "../../test/heddle-process.ts";
import { isTurnEnd, newThread, startServe } from "../../test/serve-client.ts";

test("F01 G1 G3: a server killed in the middle of a turn comes back, and the turn has one end", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ calls: [command("echo begun; exec sleep 61")] }, { text: "on" }],
  });
  await pointAt(world, model.url);
  const first = await startServe(world);
  const threadId = await newThread(first);
  const begun = await first.call("POST", `/api/threads/${threadId}/turns`, { input: "go", clientId: "k" });
  const seen = await first.events(threadId, ({ body }) => body.type === "tool.intended");
  await first[Symbol.asyncDispose]();
  await using second = await startServe(world);
  // The same address, so that clients only have to come back.
  expect(second.url).toBe(first.url);
  expect(second.token).toBe(first.token);
  const all = await second.events(threadId, isTurnEnd);
  expect(all.slice(0, seen.length)).toEqual(seen);
  expect(all.filter(isTurnEnd)).toHaveLength(1);
  const again = await second.call("POST", `/api/threads/${threadId}/turns`, { input: "go", clientId: "k" });
  expect(again.json["id"]).toBe(begun.json["id"]);
  expect(again.json).toMatchObject({ status: "interrupted", failure: { code: "turn.abandoned" } });
  await second.call("POST", `/api/threads/${threadId}/turns`, { input: "next" });
  expect((await second.events(threadId, isTurnEnd, all.length)).at(-1)?.body).toMatchObject({ status: "completed" });
});

test("F02 G1 G3: whatever was acknowledged before a kill at any moment is there after it, with one end", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "done" }] });
  await pointAt(world, model.url);
  const acknowledged = new Map<string, string>();
  // The last one as soon as something is acknowledged, however slow the machine.
  for (const waitMs of [20, 60, 140, undefined]) {
    const served = await startServe(world);
    const threads = await Promise.all(Array.from({ length: 6 }, () => newThread(served)));
    const starting = threads.map(async (threadId) => {
      const { status, json } = await served.call("POST", `/api/threads/${threadId}/turns`, {
        input: "go",
        clientId: "c",
      });
      if (status === 202) acknowledged.set(threadId, String(json["id"]));
    });
    if (waitMs === undefined) await Promise.any(starting);
    else await Promise.race([Promise.allSettled(starting), new Promise((resolve) => void setTimeout(resolve, waitMs))]);
    await served[Symbol.asyncDispose]();
    await Promise.allSettled(starting);
  }
  expect(acknowledged.size).toBeGreaterThan(0);
  await using last = await startServe(world);
  for (const [threadId, turnId] of acknowledged) {
    const again = await last.call("POST", `/api/threads/${threadId}/turns`, { input: "go", clientId: "c" });
    expect(again.json["id"]).toBe(turnId);
    const events = await last.events(threadId, isTurnEnd);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    const turns = await last.call("GET", `/api/threads/${threadId}/turns`);
    expect(turns.json["data"]).toHaveLength(1);
    expect(turns.json["data"]).not.toMatchObject([{ status: "open" }]);
  }
});

test("F32: SIGTERM ends running turns, tells followers and exits with 0, within ten seconds", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo begun; exec sleep 61")] }] });
  await pointAt(world, model.url);
  await using served = await startServe(world, { args: ["--grace", "0"] });
  const threads = await Promise.all([1, 2, 3].map(() => newThread(served)));
  for (const threadId of threads) await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  for (const threadId of threads) await served.events(threadId, ({ body }) => body.type === "tool.intended");
  const joined = threads.map(() => Promise.withResolvers<void>());
  const following = threads.map((threadId, at) =>
    served.events(threadId, (event) => {
      joined[at]?.resolve();
      return isTurnEnd(event);
    }),
  );
  await Promise.all(joined.map(({ promise }) => promise));
  const asked = performance.now();
  served.running.child.kill("SIGTERM");
  for (const events of await Promise.all(following)) {
    expect(events.at(-1)?.body).toMatchObject({
      status: "interrupted",
      failure: { message: "the server is stopping" },
    });
  }
  expect((await served.running.ended).code).toBe(0);
  expect(performance.now() - asked).toBeLessThan(10_000);
  expect(await stat(path.join(world.home, "serve.sock")).catch(() => "gone")).toBe("gone");
});

test("F32: who follows on the private socket hears the end too, and no file goes on naming a server that has gone", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo begun; exec sleep 61")] }] });
  await pointAt(world, model.url);
  await using served = await startServe(world, { args: ["--grace", "0"] });
  using connected = await connectTo(path.join(world.home, "serve.sock"));
  await connected.client.initialize();
  const threadId = await startThread(connected.client);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  await served.events(threadId, ({ body }) => body.type === "tool.intended");
  const addresses = async (): Promise<unknown> =>
    JSON.parse(await readFile(path.join(world.home, "serve.json"), "utf8"));
  const port = Number(new URL(served.url).port);
  expect(await addresses()).toMatchObject({ url: served.url, port, pid: served.running.child.pid });
  served.running.child.kill("SIGTERM");
  const ended = await connected.client.note("turn/completed");
  expect(ended.params).toMatchObject({ threadId, turn: { status: "interrupted" } });
  expect((await served.running.ended).code).toBe(0);
  expect(await addresses()).toEqual({ addresses: [], port });
  await using next = await startServe(world);
  expect(next.url).toBe(served.url);
});

test("SIGTERM drains: nothing new is begun, probes say so, and a turn that runs ends as it would have", async () => {
  await using world = await openWorld();
  const waits = command("echo begun; while [ ! -e go ]; do sleep 0.05; done");
  await using model = await startModelServer({ script: [{ calls: [waits] }, { text: "ended by itself" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const [threadId, other] = [await newThread(served), await newThread(served)];
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  await served.events(threadId, ({ body }) => body.type === "tool.intended");
  const ended = served.events(threadId, isTurnEnd);
  served.running.child.kill("SIGTERM");
  await expect.poll(async () => (await served.call("GET", "/readyz")).status).toBe(503);
  expect((await served.call("GET", "/readyz")).json).toMatchObject({
    reasons: [{ code: "draining", message: "the server is stopping" }],
  });
  expect((await served.call("GET", "/livez")).status).toBe(200);
  expect((await served.call("GET", `/api/threads/${threadId}`)).status).toBe(200);
  expect(await served.call("POST", `/api/threads/${other}/turns`, { input: "go" })).toMatchObject({
    status: 503,
    json: { error: { code: "door.overloaded" } },
  });
  expect(await served.call("GET", `/api/threads/${other}/turns`)).toMatchObject({ json: { data: [] } });
  await world.file("workspace/go", "");
  expect((await ended).at(-1)?.body).toMatchObject({ status: "completed" });
  expect((await served.running.ended).code).toBe(0);
});

test("F32 G3: a second SIGTERM ends it at once, and the turn has its one end after the next start", async () => {
  await using world = await openWorld();
  const stubborn = command("trap '' TERM INT; echo begun; while :; do sleep 1; done");
  await using model = await startModelServer({ script: [{ calls: [stubborn] }] });
  await pointAt(world, model.url);
  const served = await startServe(world, { args: ["--grace", "0"] });
  const threadId = await newThread(served);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  await served.events(threadId, ({ body }) => body.type === "tool.intended");
  const asked = performance.now();
  served.running.child.kill("SIGTERM");
  const isStopping = async (): Promise<boolean> => {
    const status = await served.call("GET", "/readyz").then(
      (answer) => answer.status,
      () => 0,
    );
    // Two signals within a moment are one keypress.
    return status !== 200 && performance.now() - asked > 200;
  };
  await expect.poll(isStopping, { interval: 20 }).toBe(true);
  served.running.child.kill("SIGTERM");
  expect((await served.running.ended).code).toBe(143);
  // Well before the 5.5 s that one signal leaves to a turn, also on a busy machine.
  expect(performance.now() - asked).toBeLessThan(4_500);
  await using next = await startServe(world);
  const events = await next.events(threadId, isTurnEnd);
  expect(events.filter(isTurnEnd)).toMatchObject([{ body: { status: "interrupted" } }]);
});

test("F09 G9: a second server on one home is refused by name, exec beside it works, and a stopped owner stays the owner", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "beside" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const doors = [["serve"], ["app-server", "--listen", `unix://${path.join(world.root, "o.sock")}`]];
  const refusals = () => Promise.all(doors.map((args) => run(args, { world, env: KEY })));
  for (const { code, stderr } of await refusals()) {
    expect(stderr).toContain("belongs to heddle serve (process ");
    expect(code).toBe(8);
  }
  const beside = await run(["exec", "hello"], { world, env: KEY });
  expect([beside.code, beside.stdout]).toEqual([0, "beside\n"]);
  const pid = Number(JSON.parse(await readFile(path.join(world.home, "serve.json"), "utf8"))["pid"]);
  process.kill(pid, "SIGSTOP");
  try {
    for (const { stderr } of await refusals()) expect(stderr).toContain(`(process ${pid})`);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  expect((await served.call("GET", "/api/threads")).status).toBe(200);
  process.kill(pid, "SIGKILL");
  await served.running.ended;
  await using next = await startServe(world);
  expect((await next.call("GET", "/healthz")).json).toEqual({ ok: true });
  const claims = await readdir(path.join(world.home, "owner"));
  expect(claims.filter((name) => !name.endsWith(".sock"))).toEqual(["2"]);
  expect(claims).toHaveLength(2);
});

test("F33: a server that stands still for five seconds says so, and loses neither its store, its turn nor its followers", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ answers }) => (answers === 0 ? { calls: [command("echo hi")] } : { text: "done" }),
  });
  await pointAt(world, model.url);
  await using served = await startServe(world, { env: { HEDDLE_FAILPOINT: "turn.after-response=stall" } });
  const threadId = await newThread(served);
  const following = served.events(threadId, isTurnEnd);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  const isStill = async (): Promise<boolean> => {
    const answer = await fetch(`${served.url}/healthz`, { signal: AbortSignal.timeout(300) }).catch(() => undefined);
    return answer === undefined;
  };
  await expect.poll(isStill, { interval: 5, timeout: 60_000 }).toBe(true);
  // Others look at it now: one that wants the store, and one that closes the turns of dead processes when it opens.
  const [second, beside] = await Promise.all([
    run(["serve"], { world, env: KEY }),
    run(["exec", "hello"], { world, env: KEY }),
  ]);
  expect([second.code, second.stderr]).toEqual([8, expect.stringContaining("belongs to heddle serve (process ")]);
  expect(beside.code).toBe(0);
  const events = await following;
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.filter(isTurnEnd).map(({ body }) => body["status"])).toEqual(["completed"]);
  await served.running.sees("watchdog: the server was blocked for ");
  served.running.child.kill("SIGTERM");
  const [, stood] =
    /was blocked for (\d+\.\d) s, \d+\.\d s of it at work/.exec((await served.running.ended).stderr) ?? [];
  expect(Number(stood)).toBeGreaterThan(4.6);
  expect(Number(stood)).toBeLessThan(8);
});

test("S08 S10: an address of other machines, and tokens that others can read, are refused before anything is served", async () => {
  await using world = await openWorld();
  const open = await run(["serve", "--listen", "http://0.0.0.0:0"], { world });
  expect([open.code, open.stderr]).toEqual([2, expect.stringContaining("--allow-non-loopback")]);
  await mkdir(world.home, { recursive: true });
  await writeFile(path.join(world.home, "serve.token"), "x".repeat(43), { mode: 0o644 });
  const loose = await run(["serve"], { world });
  expect([loose.code, loose.stderr]).toEqual([8, expect.stringContaining("chmod 600")]);
});

test("the owner's token is printed once, when it is made, and never on the error stream", async () => {
  await using world = await openWorld();
  const outputs: string[] = [];
  for (let starts = 0; starts < 2; starts += 1) {
    await using running = start(["serve"], { world });
    await running.sees("try      curl");
    running.child.kill("SIGTERM");
    const { stdout, stderr } = await running.ended;
    outputs.push(stdout);
    const token = (await readFile(path.join(world.home, "serve.token"), "utf8")).trim();
    expect(stdout.includes(token)).toBe(starts === 0);
    expect(stderr).not.toContain(token);
  }
  expect(outputs[1]).toContain("serving  http://127.0.0.1:");
});

test("tokens are made, listed and revoked", async () => {
  await using world = await openWorld();
  await using served = await startServe(world);
  const made = await run(["token", "add", "user", "una"], { world });
  const token = made.stdout.trim();
  expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
  const mine = { ...served, token };
  const status = async () => {
    const answer = await fetch(`${mine.url}/api/threads`, { headers: { authorization: `Bearer ${token}` } });
    return answer.status;
  };
  await expect.poll(status).toBe(200);
  const listed = await run(["token", "list"], { world });
  expect(listed.stdout).toMatch(/^user +una /);
  expect(listed.stdout).not.toContain(token);
  expect((await run(["token", "revoke", "viewer", "una"], { world })).code).toBe(2);
  expect((await run(["token", "revoke", "user", "una"], { world })).code).toBe(0);
  await expect.poll(status).toBe(401);
  expect((await run(["token", "add", "root", "x"], { world })).stderr).toContain("owner, user, viewer");
});

test("S15: over a WebSocket the Codex dialect is the owner's alone, and a page or a wrong token gets no WebSocket", async () => {
  await using world = await openWorld();
  await using served = await startServe(world);
  const user = (await run(["token", "add", "user", "una"], { world })).stdout.trim();
  const clientInfo = { name: "probe", version: "0" };
  const initialize = { id: 1, method: "initialize", params: { clientInfo } };
  const refused = await rpc(served.url, user, initialize, { id: 2, method: "thread/list", params: {} });
  expect(refused).toMatchObject({ id: 2, error: { data: { code: "door.forbidden", role: "user" } } });
  expect(await rpc(served.url, served.token, initialize)).toMatchObject({ id: 1, result: { platformFamily: "unix" } });
  await expect(rpc(served.url, "nobody", initialize)).rejects.toThrow("no WebSocket");
});

test("S17: an agent finds neither the token nor a private socket of the server that runs it", async () => {
  await using world = await openWorld();
  // Where the agent works, so that nothing but the mask can hide it.
  const socket = path.join(world.workspace, "other.sock");
  const probe = [
    `const { connect } = require("node:net");`,
    `for (const at of [${JSON.stringify(socket)}, ${JSON.stringify(path.join(world.home, "serve.sock"))}]) {`,
    `  connect(at, () => console.log("OPEN", at)).on("error", (error) => console.log(error.code));`,
    `}`,
    `try { console.log(require("node:fs").readFileSync(${JSON.stringify(path.join(world.home, "serve.token"))}, "utf8")); }`,
    `catch (error) { console.log(error.code); }`,
  ].join("\n");
  await world.file("workspace/probe.cjs", probe);
  await using model = await startModelServer({
    script: [{ calls: [command(`${process.execPath} probe.cjs`)] }, { text: "done" }],
  });
  await pointAt(world, model.url);
  const args = ["--listen", "http://127.0.0.1:0", "--listen", "unix://", "--listen", `unix://${socket}`];
  await using served = await startServe(world, { args });
  const threadId = await newThread(served);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go", sandboxMode: "workspace-write" });
  const events = await served.events(threadId, isTurnEnd);
  const ran = events.find(({ body }) => body.type === "item.completed" && at(body, "item.type") === "commandExecution");
  expect(at(ran?.body, "item.exitCode")).toBe(0);
  const lines = String(at(ran?.body, "item.output")).trim().split("\n");
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).toMatch(/^E[A-Z]+$/);
});

/** One request over a WebSocket of its own. */
interface Request {
  readonly id: number;
  readonly method: string;
  readonly params: object;
}

/** The answer to the last of the messages, which are sent one after the other. */
function rpc(url: string, token: string, ...messages: readonly Request[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/?token=${token}`);
    socket.addEventListener("open", () => messages.forEach((message) => socket.send(JSON.stringify(message))));
    socket.addEventListener("error", () => reject(new Error("no WebSocket")));
    socket.addEventListener("message", ({ data }) => {
      const answer = JSON.parse(String(data)) as { readonly id?: number };
      if (answer.id !== messages.at(-1)?.id) return;
      socket.close();
      resolve(answer);
    });
  });
}
