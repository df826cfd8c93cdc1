/** MCP over streamable HTTP at `heddle serve`, by the official client, in both eras of the protocol. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run, type World } from "../../test/heddle-process.ts";
import { countOf, ERAS, eventsOf, openMcpHttp, threadsOf } from "../../test/mcp-client.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";
import { startServe } from "../../test/serve-client.ts";

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });
const UNTIL_GO = shell("until test -e go; do sleep 0.05; done; echo gone");

async function tokenOf(world: World, role: string, name: string): Promise<string> {
  const { stdout } = await run(["token", "add", role, name], { world });
  return stdout.trim().split("\n").at(-1)?.trim() ?? "";
}

test.each(ERAS)(
  "%s: a thread is started, waited for with progress, and left to run by a client that goes",
  async (era) => {
    await using mock = await openMockWorld({ script: [UNTIL_GO, { text: "It is over." }] });
    const { world } = mock;
    const ada = await tokenOf(world, "user", "ada");
    await using served = await startServe(world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
    let threadId: unknown;
    {
      await using first = await openMcpHttp({ ...served, token: ada }, { era });
      expect(first.client.getNegotiatedProtocolVersion()).toBe(era);
      ({ threadId } = await first.call("thread_start", { prompt: "wait for go" }));
      const control = new AbortController();
      const waited = first.call("thread_wait", { threadId, timeoutSec: 600 }, { signal: control.signal });
      await mock.server.arrived(0);
      control.abort(new Error("enough"));
      await expect(waited).rejects.toThrow();
    }
    await using second = await openMcpHttp({ ...served, token: ada }, { era });
    const told: string[] = [];
    const onprogress = ({ message = "" }): void => void told.push(message);
    const waiting = second.call("thread_wait", { threadId, timeoutSec: 60 }, { onprogress });
    await expect.poll(() => told).toContain("the turn runs");
    await writeFile(path.join(world.workspace, "go"), "");
    expect(await waiting).toMatchObject({ status: "completed", answer: "It is over." });
    const admitted = (await eventsOf(world, String(threadId))).filter(({ body }) => body.type === "turn.admitted");
    expect(admitted.map(({ author }) => author)).toEqual(["user:ada"]);
  },
);

test.each(ERAS)("%s: a task that is added is carried out by the server and decided by its checks", async (era) => {
  await using mock = await openMockWorld({ script: [shell("touch done.txt"), { text: "It is done." }] });
  await using served = await startServe(mock.world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  await using client = await openMcpHttp(served, { era });
  const spec = { goal: "make done.txt", checks: [{ "file-exists": "done.txt" }] };
  const { taskId } = await client.call("task_add", { spec });
  expect(await client.call("task_show", { taskId, timeoutSec: 50 })).toMatchObject({ state: "verified" });
  expect(await client.text("evidence_query", { task: taskId, limit: 3 })).toContain("Quoted from the record");
});

test("each principal may call what its role says, and is refused the rest with a code", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "done" }) });
  const { world } = mock;
  const [una, vic] = [await tokenOf(world, "user", "una"), await tokenOf(world, "viewer", "vic")];
  await using served = await startServe(world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  await using owner = await openMcpHttp(served);
  await using user = await openMcpHttp({ ...served, token: una });
  await using viewer = await openMcpHttp({ ...served, token: vic }, { era: "2026-07-28" });
  expect(await viewer.names()).toEqual([
    "thread_wait",
    "thread_read",
    "thread_list",
    "task_show",
    "task_list",
    "evidence_query",
    "evidence_get",
  ]);
  expect(await user.names()).toEqual(await owner.names());
  for (const name of ["thread_start", "thread_continue", "thread_cancel", "task_add"]) {
    expect(await viewer.refused(name, { prompt: "x", goal: "x" })).toMatchObject({ code: "door.forbidden" });
  }
  const { threadId } = await user.call("thread_start", { prompt: "go" });
  expect(await viewer.call("thread_wait", { threadId })).toMatchObject({ status: "completed" });
  const free = { prompt: "x", sandboxMode: "danger-full-access" };
  expect(await user.refused("thread_start", free)).toMatchObject({ code: "door.forbidden" });
  const outside = { prompt: "x", workspace: world.root };
  expect(await user.refused("thread_start", outside)).toMatchObject({ code: "door.forbidden" });
  expect(await owner.call("thread_start", outside)).toMatchObject({ status: "running" });
  await expect(openMcpHttp({ ...served, token: vic }, { path: "/mcp/envelopes/explore" })).rejects.toThrow(
    /403|role viewer/,
  );
  await expect(openMcpHttp({ ...served, token: "wrong-token-0123456789" })).rejects.toThrow();
  await using full = await openMcpHttp({ ...served, token: una }, { path: "/mcp/envelopes/full" });
  await expect(full.names()).rejects.toThrow(/door\.forbidden/);
});

test("2025-11-25: two clients of one token have envelope sessions of their own, and DELETE ends one, once", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  await using served = await startServe(world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  const at = { path: "/mcp/envelopes/explore" };
  await using one = await openMcpHttp(served, at);
  {
    await using two = await openMcpHttp(served, { path: "/mcp/envelopes/edit" });
    expect(await one.text("bash", { command: "echo x > no.txt" })).toContain("Read-only");
    expect(await two.text("bash", { command: "echo x > yes.txt && cat yes.txt" })).toContain("x");
    expect(await two.text("hop", { to: "explore", reason: "to look" })).not.toMatch(/^ERROR/);
    expect(await two.text("bash", { command: "echo x > no.txt" })).toContain("Read-only");
  }
  expect(existsSync(path.join(world.workspace, "yes.txt"))).toBe(true);
  const ids = await threadsOf(world);
  expect(ids).toHaveLength(2);
  const ends = await Promise.all(ids.map((id) => countOf(world, id, "turn.completed")));
  expect(ends.toSorted((a, b) => a - b)).toEqual([0, 1]);
  const none = await served.call("DELETE", "/mcp/envelopes/explore");
  expect(none).toMatchObject({ status: 400, json: { error: { code: "usage.invalid" } } });
  expect(await one.text("bash", { command: "echo still here" })).toContain("still here");
});

test("2026-07-28: requests of one token share a session; one that a user ended begins again when the client connects", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  await using served = await startServe(world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  const at = { path: "/mcp/envelopes/edit", era: "2026-07-28" } as const;
  const one = await openMcpHttp(served, at);
  expect(await one.text("bash", { command: "echo one > a.txt && cat a.txt" })).toContain("one");
  await using two = await openMcpHttp(served, at);
  expect(await two.text("bash", { command: "cat a.txt" })).toContain("one");
  const [threadId = "", ...others] = await threadsOf(world);
  expect(others).toEqual([]);
  const [turn] = (await served.call("GET", `/api/threads/${threadId}/turns`)).json["data"] as { id: string }[];
  await served.call("POST", `/api/threads/${threadId}/turns/${turn?.id}/interrupt`, {});
  await expect.poll(() => countOf(world, threadId, "turn.completed")).toBe(1);
  expect(await two.refused("bash", { command: "echo again" })).toMatchObject({ code: "turn.interrupted" });
  await using three = await openMcpHttp(served, at);
  expect(await three.text("bash", { command: "echo new" })).toContain("new");
  expect(await threadsOf(world)).toHaveLength(2);
  await one.client.close();
});

test("hostile requests are refused, each with a code, and the server serves on", async () => {
  await using mock = await openMockWorld({ script: [] });
  await using served = await startServe(mock.world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  const send = (body: string, headers: Record<string, string> = {}, where = "/mcp") =>
    fetch(`${served.url}${where}`, {
      method: "POST",
      body,
      headers: {
        authorization: `Bearer ${served.token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
    });
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const statuses = [
    await send(list),
    await send(list, { origin: "http://evil.example" }),
    await send(list, { authorization: "" }),
    await send(list, { "content-type": "text/plain" }),
    await send("not json"),
    await send("["),
    await send(`{"jsonrpc":"2.0","id":1,"method":"x","params":${"[".repeat(100)}${"]".repeat(100)}}`),
    await send(list, { "mcp-session-id": "made-up" }, "/mcp/envelopes/explore"),
    await send(list, {}, "/mcp/envelopes/explore"),
    await send(list, {}, "/mcp/envelopes/nothing"),
    await send(list, {}, "/mcp/envelopes/..%2f..%2fetc"),
    await fetch(`${served.url}/mcp`, { headers: { authorization: `Bearer ${served.token}` } }),
    await send(list),
  ].map(({ status }) => status);
  expect(statuses).toEqual([200, 403, 401, 415, 400, 400, 400, 404, 400, 400, 400, 405, 200]);
});
