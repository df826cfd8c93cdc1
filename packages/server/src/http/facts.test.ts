import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { newTurnId, NO_USAGE, type EventBody } from "@heddle/protocol";
import type { ConfigAnswer, DoctorAnswer, Thread } from "@heddle/protocol/http";
import { expect, test } from "vitest";
import type { z } from "zod";
import { ask, openHttpWorld, SETTINGS } from "../../test/http-world.ts";

const HOLDER = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };

test("what a turn runs with is shown with its sources, the file only to an owner, and why none can begin", async () => {
  const explained = {
    settings: { ...SETTINGS, developerInstructions: "private words" },
    sources: { model: "file", sandboxMode: "default", developerInstructions: "file" },
    canSearch: false,
  } as const;
  const settings = { resolve: () => Promise.resolve(SETTINGS), explain: () => Promise.resolve(explained) };
  await using world = await openHttpWorld({ settings, configFile: "/home/ada/.heddle/config.toml" });
  const config = async (token: string) => (await world.ask("/api/config", { token })).json as ConfigAnswer;
  const shown = await config(world.tokens.owner);
  expect(shown).toMatchObject({
    file: "/home/ada/.heddle/config.toml",
    turn: {
      settings: { provider: "mock", model: "m", sandboxMode: "read-only" },
      sources: { model: "file", sandboxMode: "default" },
    },
  });
  expect(JSON.stringify(shown)).not.toContain("private words");
  expect(await config(world.tokens.viewer)).not.toHaveProperty("file");
  const doctor = await world.ask("/api/doctor");
  expect(doctor.json as DoctorAnswer).toEqual({ data: [{ name: "node", state: "ok", detail: "v24" }], problems: 0 });
});

test("requests under the public address are taken, and only from its own pages", async () => {
  await using world = await openHttpWorld();
  await using listener = await world.door.listen({
    host: "127.0.0.1",
    port: 0,
    names: [],
    publicUrl: "https://heddle.example/",
  });
  const port = Number(new URL(listener.address).port);
  const call = async (headers: Readonly<Record<string, string>>) =>
    (await ask(port, "/api/server", { token: world.tokens.owner, headers })).status;
  const host = "heddle.example";
  expect(await call({ host })).toBe(200);
  expect(await call({ host, origin: "https://heddle.example", "sec-fetch-site": "same-origin" })).toBe(200);
  expect(await call({ host, origin: "http://heddle.example" })).toBe(403);
  expect(await call({ host, origin: "https://evil.example" })).toBe(403);
  expect(await call({ host: "heddle.example:1" })).toBe(421);
});

test("a whole output is read by its hash, or some bytes of it, only in a thread that names it", async () => {
  await using world = await openHttpWorld();
  const [threadId, other] = [await world.newThread(), await world.newThread()];
  const whole = "0123456789".repeat(20_000);
  const sha256 = createHash("sha256").update(whole).digest("hex");
  await mkdir(join(world.home, "blobs"), { recursive: true });
  await writeFile(join(world.home, "blobs", sha256), whole, { mode: 0o600 });
  const turnId = newTurnId();
  const item = { type: "commandExecution", id: "i", callId: "k", command: "seq", cwd: "/w", output: "0" } as const;
  const events: EventBody[] = [
    {
      type: "turn.admitted",
      v: 1,
      turnId,
      input: [{ type: "text", text: "go" }],
      settings: SETTINGS,
      holder: HOLDER,
    },
    { type: "item.started", v: 1, turnId, item: { ...item, status: "inProgress" } },
    { type: "item.completed", v: 1, turnId, item: { ...item, status: "completed", outputBlob: sha256 } },
  ];
  await world.heddle.journal.append({ stream: threadId, author: "agent:embedded", events });
  const read = (of: string, query = "") =>
    world.ask(`/api/threads/${of}/outputs/${sha256}${query}`, { token: world.tokens.viewer });
  const all = await read(threadId);
  expect([all.status, all.text === whole]).toEqual([200, true]);
  expect(all.headers).toMatchObject({
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  });
  expect((await read(threadId, "?from=99995&limit=12")).text).toBe("567890123456");
  expect((await read(threadId, "?from=999999")).text).toBe("");
  expect(await read(other)).toMatchObject({ status: 404, json: { error: { code: "evidence.not-found" } } });
  expect((await world.ask(`/api/threads/${threadId}/processes`)).json).toEqual({ data: [] });
  const end = { method: "POST", body: { startTicks: "1" } };
  // A process of this machine that is not the thread's.
  const ended = await world.ask(`/api/threads/${threadId}/processes/${process.pid}/end`, end);
  expect(ended.json).toEqual({ outcome: "gone" });
});

test("a thread says what it cost, what has no price, and which task it was made for", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.heddle.as("user:owner").createThread({ workspace: world.home, origin: "task:task_1" });
  const turnId = newTurnId();
  const asks = (requestId: string): EventBody => {
    return { type: "model.requested", v: 1, turnId, requestId, provider: "mock", model: "m", requestBytes: 1 };
  };
  const answers = (requestId: string, inputTokens: number, costUsd?: number): EventBody => ({
    type: "model.responded",
    v: 1,
    turnId,
    requestId,
    output: [],
    stopReason: "stop",
    usage: { ...NO_USAGE, inputTokens, outputTokens: 5 },
    ...(costUsd === undefined ? {} : { costUsd }),
  });
  const input = [{ type: "text" as const, text: "go" }];
  await world.heddle.journal.append({
    stream: threadId,
    author: "agent:embedded",
    events: [
      { type: "turn.admitted", v: 1, turnId, input, settings: SETTINGS, holder: HOLDER },
      asks("r1"),
      answers("r1", 100, 0.25),
      asks("r2"),
      answers("r2", 200),
    ],
  });
  const listed = (await world.ask("/api/threads")).json as { data: z.output<typeof Thread>[] };
  const known = {
    taskId: "task_1",
    costUsd: 0.25,
    unpriced: 1,
    asks: 0,
    usage: { inputTokens: 300, outputTokens: 10 },
  };
  expect(listed.data[0]).toMatchObject(known);
  expect((await world.ask(`/api/threads/${threadId}`)).json).toMatchObject(known);
  const turn = (await world.ask(`/api/threads/${threadId}/turns/${turnId}`)).json;
  expect(turn).toMatchObject({ contextUsed: 205 });
  expect(turn).not.toHaveProperty("costUsd");
});
