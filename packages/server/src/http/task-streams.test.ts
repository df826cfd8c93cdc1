/** What happens to tasks, as it happens: server-sent events and WebSockets, from any cursor. */
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { openHttpWorld } from "../../test/http-world.ts";
import { follow } from "../../test/sse-client.ts";
import { made, post } from "../../test/task-calls.ts";

test("104: a client that follows after its snapshot misses nothing, and comes back where it was", async () => {
  await using world = await openHttpWorld();
  await world.newTask();
  const list = (await world.ask("/api/tasks")).json as { position: number };
  // Between the snapshot and the first word of the stream.
  const between = await made(world, { prompt: "between" });
  await world.newThread();
  using all = await follow(`${world.url}/api/events?only=tasks&after=${list.position}`, world.tokens.viewer);
  await all.waitFor(({ data }) => data["taskId"] === between.id);
  const live = await made(world, { prompt: "live" });
  await post(world, `/api/tasks/${live.id}/pause`, {});
  const last = await all.waitFor(({ data }) => (data["body"] as EventBody | undefined)?.type === "task.paused");
  const stored = all.messages.filter(({ event }) => event === "message");
  expect(stored.map(({ data }) => data["taskId"])).toEqual([between.id, live.id, live.id]);
  await post(world, `/api/tasks/${live.id}/resume`, {});
  const headers = { "last-event-id": String(last.id) };
  using again = await follow(`${world.url}/api/events?only=tasks&follow=false`, world.tokens.viewer, headers);
  await again.ended;
  const missed = again.messages.filter(({ event }) => event === "message");
  expect(missed.map(({ data }) => (data["body"] as EventBody).type)).toEqual(["task.resumed"]);
});

test("104: one task is followed by its own numbers until it is deleted", async () => {
  await using world = await openHttpWorld();
  const { id, seq } = await made(world, { prompt: "a" });
  using client = await follow(`${world.url}/api/tasks/${id}/events?after=${seq}`, world.tokens.viewer);
  await client.waitFor(({ event }) => event === "caughtUp");
  await world.newTask();
  await post(world, `/api/tasks/${id}/cancel`, {});
  await world.ask(`/api/tasks/${id}`, { method: "DELETE" });
  await client.ended;
  const received = client.messages.filter(({ event }) => event !== "caughtUp");
  expect(received.map(({ id: cursor, event }) => cursor ?? event)).toEqual([2, 3, "end"]);
  expect(received.at(-1)?.data).toMatchObject({ reason: "deleted" });
  expect(await world.ask(`/api/tasks/${id}/events`)).toMatchObject({ status: 404 });
});

test("105: the same streams over a WebSocket, with the same cursors", async () => {
  await using world = await openHttpWorld();
  const { id } = await made(world, { prompt: "a" });
  const open = (path: string) =>
    new WebSocket(`${world.url.replace("http", "ws")}${path}`, {
      headers: { authorization: `Bearer ${world.tokens.viewer}` },
    });
  const socket = open(`/api/events?only=tasks`);
  const received: { id?: number; event?: string; data: { taskId?: string; body?: { type: string } } }[] = [];
  socket.on("message", (text: Buffer) => received.push(JSON.parse(text.toString("utf8"))));
  await expect.poll(() => received.some(({ event }) => event === "caughtUp")).toBe(true);
  await world.newThread();
  await post(world, `/api/tasks/${id}/cancel`, {});
  await expect
    .poll(() => received.map(({ event, data }) => event ?? data.body?.type))
    .toEqual(["task.created", "caughtUp", "task.cancelled"]);
  const one = open(`/api/tasks/${id}/events?after=1`);
  const [text] = await new Promise<string[]>((resolve) => {
    one.once("message", (message: Buffer) => resolve([message.toString("utf8")]));
  });
  expect(JSON.parse(text ?? "")).toMatchObject({ id: 2, data: { taskId: id, body: { type: "task.cancelled" } } });
  const refused = open("/api/tasks/task_nobody/events");
  const status = await new Promise((resolve) => {
    refused.once("unexpected-response", (_request, response) => resolve(response.statusCode));
  });
  expect(status).toBe(404);
  for (const client of [socket, one]) client.terminate();
});

test("14.4: a WebSocket that does not read is disconnected like any reader, and nothing is kept for it", async () => {
  await using world = await openHttpWorld({ stuckMs: 200 });
  const threadId = await world.newThread();
  const url = `${world.url.replace("http", "ws")}/api/threads/${threadId}/events?token=${world.tokens.viewer}`;
  const open = async (after: number): Promise<{ socket: WebSocket; received: { id?: number; event?: string }[] }> => {
    const socket = new WebSocket(`${url}&after=${after}`);
    const received: { id?: number; event?: string }[] = [];
    socket.on("message", (text: Buffer) => received.push(JSON.parse(text.toString("utf8"))));
    await expect.poll(() => received.length).toBeGreaterThan(0);
    return { socket, received };
  };
  const slow = await open(0);
  expect(world.door.followers).toBe(1);
  slow.socket.pause();
  for (let count = 0; count < 200; count += 1) await world.append(threadId, 1, 100_000);
  await expect.poll(() => world.door.followers, { timeout: 60_000 }).toBe(0);
  slow.socket.terminate();
  const last = slow.received.at(-1)?.id ?? 0;
  const again = await open(last);
  await expect.poll(() => again.received.some(({ event }) => event === "caughtUp"), { timeout: 60_000 }).toBe(true);
  const ids = again.received.flatMap(({ id }) => id ?? []);
  expect(ids).toEqual(Array.from({ length: 201 - last }, (_, at) => last + 1 + at));
  again.socket.terminate();
});
