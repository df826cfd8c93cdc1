import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { HeddleClient } from "./client.ts";
import type { FollowOptions } from "./follow.ts";

const THREAD = "0198c0de-0000-7000-8000-000000000001";
const OTHER = "0198c0de-0000-7000-8000-000000000002";

let server: Server | undefined;

afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  if (server !== undefined) await once(server, "close");
  server = undefined;
});

interface Reply {
  readonly status?: number;
  readonly body: string;
}

/** Answers the nth request with the nth reply, the last one again and again; tells what it was asked. */
async function openClient(replies: readonly Reply[]): Promise<{ client: HeddleClient; asked: URL[] }> {
  const asked: URL[] = [];
  server = createServer((request, response) => {
    const reply = replies[Math.min(asked.length, replies.length - 1)];
    asked.push(new URL(request.url ?? "", "http://localhost"));
    response.writeHead(reply?.status ?? 200, { "content-type": "text/event-stream" });
    response.end(reply?.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { client: new HeddleClient({ url: `http://127.0.0.1:${address.port}`, token: "t" }), asked };
}

function stored(seq: number, { position = seq, threadId = THREAD } = {}): string {
  return `id: ${seq}\ndata: ${JSON.stringify({ threadId, seq, position, body: { type: "thread.named" } })}\n\n`;
}

function ended(reason: string): string {
  return `event: end\ndata: ${JSON.stringify({ after: 0, reason })}\n\n`;
}

function refused(status: number, code: string): Reply {
  return { status, body: JSON.stringify({ error: { code, message: "no" } }) };
}

async function seqs(client: HeddleClient, options: FollowOptions = { threadId: THREAD }): Promise<string[]> {
  const received: string[] = [];
  for await (const got of client.follow(options)) {
    received.push(got.kind === "event" ? `${got.event.threadId === THREAD ? "" : "other "}${got.event.seq}` : got.kind);
  }
  return received;
}

const afters = (asked: readonly URL[]): (string | null)[] => asked.map((url) => url.searchParams.get("after"));

test("a stream that breaks off goes on from the last event, and what comes again is passed over", async () => {
  const { client, asked } = await openClient([
    { body: stored(1) + stored(2) },
    { body: stored(2) + stored(3) + ended("end") },
  ]);
  expect(await seqs(client)).toEqual(["1", "2", "3"]);
  expect(afters(asked)).toEqual(["0", "2"]);
});

test("an event that is cut in the middle is not taken for a whole one", async () => {
  const { client } = await openClient([
    { body: stored(1) + stored(2).slice(0, -20) },
    { body: stored(2) + ended("end") },
  ]);
  expect(await seqs(client)).toEqual(["1", "2"]);
});

test("a hole is asked for once more from before it, and is an error when it stays", async () => {
  const fixed = await openClient([{ body: stored(1) + stored(3) }, { body: stored(2) + stored(3) + ended("end") }]);
  expect(await seqs(fixed.client)).toEqual(["1", "2", "3"]);
  expect(afters(fixed.asked)).toEqual(["0", "1"]);
  server?.close();
  const broken = await openClient([{ body: stored(1) + stored(3) }]);
  await expect(seqs(broken.client)).rejects.toMatchObject({ code: "events.gap" });
  expect(broken.asked).toHaveLength(2);
});

test("in the stream of all threads the cursor is the position, and each thread is dense by itself", async () => {
  const { client, asked } = await openClient([
    { body: stored(7, { position: 20 }) + stored(1, { position: 21, threadId: OTHER }) },
    { body: stored(8, { position: 22 }) + stored(2, { position: 30, threadId: OTHER }) + ended("end") },
  ]);
  expect(await seqs(client, {})).toEqual(["7", "other 1", "8", "other 2"]);
  expect(afters(asked)).toEqual(["0", "21"]);
});

test.each([
  [401, "door.unauthorized"],
  [403, "door.forbidden"],
  [404, "thread.not-found"],
  [410, "cursor.expired"],
])("%i is final", async (status, code) => {
  const { client, asked } = await openClient([refused(status, code)]);
  await expect(seqs(client)).rejects.toMatchObject({ code, status });
  expect(asked).toHaveLength(1);
});

test("a server that is busy or stops is asked again; one that forgot the cursor or revoked the token is not", async () => {
  const busy = await openClient([
    refused(503, "door.overloaded"),
    { body: stored(1) + ended("stopping") },
    { body: stored(2) + ended("deleted") },
  ]);
  const lost: unknown[] = [];
  const onReconnect = (info: { readonly after: number }): void => void lost.push(info.after);
  expect(await seqs(busy.client, { threadId: THREAD, onReconnect })).toEqual(["1", "2"]);
  expect(lost).toEqual([0, 1]);
  server?.close();
  for (const [reason, code] of [
    ["cursor.expired", "cursor.expired"],
    ["revoked", "door.unauthorized"],
  ] as const) {
    const { client } = await openClient([{ body: stored(1) + ended(reason) }]);
    await expect(seqs(client)).rejects.toMatchObject({ code });
    server?.close();
  }
});

test("live words are told beside the stored ones and move no cursor", async () => {
  const live = `event: delta\ndata: {"delta":"a"}\n\nevent: caughtUp\ndata: {}\n\nevent: lagged\ndata: {"after":1}\n\n`;
  const { client, asked } = await openClient([{ body: `:\n\n${stored(1)}${live}` }, { body: ended("end") }]);
  expect(await seqs(client)).toEqual(["1", "delta", "caughtUp", "lagged"]);
  expect(afters(asked)).toEqual(["0", "1"]);
});

test("stopping ends the wait for the next try at once", async () => {
  const { client } = await openClient([refused(503, "door.overloaded")]);
  const stop = new AbortController();
  const reading = seqs(client, {
    threadId: THREAD,
    signal: stop.signal,
    onReconnect: () => stop.abort(new Error("enough")),
  });
  await expect(reading).rejects.toThrow("enough");
});

test("nothing in the package needs Node", async () => {
  const folder = import.meta.dirname;
  const files = (await readdir(folder)).filter((name) => name.endsWith(".ts") && !name.includes(".test."));
  expect(files.length).toBeGreaterThan(5);
  for (const name of files) {
    const source = await readFile(path.join(folder, name), "utf8");
    expect(source, name).not.toMatch(/from "node:|\bprocess\.|\bBuffer\b|require\(/);
  }
});

test("a task is followed by its own numbers, and of all streams those of tasks alone can be asked for", async () => {
  const task = "task_one";
  const { client, asked } = await openClient([
    { body: stored(3, { threadId: task, position: 90 }) },
    {
      body:
        stored(3, { threadId: task, position: 90 }) + stored(4, { threadId: task, position: 95 }) + ended("deleted"),
    },
    { body: stored(7, { threadId: task, position: 99 }) + ended("end") },
  ]);
  const received: number[] = [];
  for await (const got of client.tasks.follow(task, { after: 2 }))
    if (got.kind === "event") received.push(got.event.seq);
  expect(received).toEqual([3, 4]);
  for await (const got of client.follow({ only: "tasks", after: 95 }))
    if (got.kind === "event") received.push(got.event.position);
  expect(received).toEqual([3, 4, 99]);
  expect(asked.map(({ pathname, search }) => pathname + search)).toEqual([
    "/api/tasks/task_one/events?after=2",
    "/api/tasks/task_one/events?after=3",
    "/api/events?after=95&only=tasks",
  ]);
});

test("a connection that hangs without closing is given up, and opened again from the cursor", async () => {
  const asked: string[] = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(200, { "content-type": "text/event-stream" });
    // The first one says something, and then nothing ever again.
    response.write(`${stored(1)}:\n\n`);
    if (asked.length > 1) response.end(`${stored(2)}${ended("end")}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const client = new HeddleClient({ url: `http://127.0.0.1:${address.port}`, token: "t" });
  const causes: unknown[] = [];
  let signs = 0;
  const options: FollowOptions = {
    threadId: THREAD,
    idleMs: 200,
    onSign: () => (signs += 1),
    onReconnect: ({ cause }) => causes.push(cause),
  };
  expect(await seqs(client, options)).toEqual(["1", "2"]);
  // On a busy machine a good connection may be taken for a silent one too, and is opened again like it.
  expect(asked.length).toBeGreaterThan(1);
  expect(new Set(causes.map((cause) => (cause as { code?: string }).code))).toEqual(new Set(["server.silent"]));
  expect(signs).toBeGreaterThan(0);
});

test("events of some types are followed across the gaps between them", async () => {
  const { client, asked } = await openClient([{ body: stored(1) + stored(4, { position: 9 }) + ended("end") }]);
  expect(await seqs(client, { types: ["thread.named"], streams: [THREAD] })).toEqual(["1", "4"]);
  expect(asked[0]?.search).toContain(`types=thread.named&streams=${THREAD}`);
});
