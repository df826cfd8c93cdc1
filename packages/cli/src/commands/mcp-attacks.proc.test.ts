/** MCP clients that mean harm: out of their envelope, into the session of another, in an era that the server does not speak. */
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { run, type World } from "../../test/heddle-process.ts";
import { openMcpHttp, threadsOf } from "../../test/mcp-client.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";
import { startServe } from "../../test/serve-client.ts";

const hello = (protocolVersion: string): object => ({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});
const call = (id: number, name: string, args: object, more: object = {}): object => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args, ...more },
});

interface Answer {
  readonly id: unknown;
  readonly error?: { readonly code: number };
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text?: string }[] };
}

/** Every answer to these messages, by its id. */
async function answersOf(
  world: World,
  args: readonly string[],
  messages: readonly object[],
): Promise<Map<unknown, Answer>> {
  const stdin = messages.map((message) => `${JSON.stringify(message)}\n`).join("");
  const ran = await run(["mcp", "serve", ...args], { world, env: MOCK_KEY, stdin, withinMs: 60_000 });
  expect(ran.code, ran.stderr).toBe(0);
  const answers = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line): Answer => JSON.parse(line));
  return new Map(answers.filter(({ id }) => id !== undefined).map((answer) => [answer.id, answer]));
}

const textOf = ({ result }: Answer = { id: 0 }): string =>
  (result?.content ?? []).map(({ text }) => text ?? "").join("\n");

test("S50: a client of --envelope cannot leave it: by tools of other surfaces, arguments, metadata, hops or paths", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  const outside = path.join(world.root, "outside.txt");
  const wide = { "io.heddle/envelope": "full", envelope: "full", sandbox: "danger-full-access" };
  const answers = await answersOf(
    world,
    ["--envelope", "edit"],
    [
      hello("2025-11-25"),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      call(2, "thread_start", { prompt: "hello" }),
      call(3, "task_add", { prompt: "hello" }),
      call(4, "bash", { command: `echo x > ${outside}`, ...wide }, { _meta: wide }),
      call(5, "bash", { command: `echo x > ${outside}`, sandbox_permissions: "require_escalated" }),
      call(6, "write", { file_path: outside, content: "x" }),
      call(7, "write", { file_path: "../outside.txt", content: "x" }),
      call(8, "hop", { to: "full", reason: "I may" }),
      call(9, "bash", {
        command: `cat ${path.join(world.home, "config.toml")} ${path.join(world.home, "serve.token")}`,
      }),
      call(10, "__proto__", {}),
      call(11, "bash", JSON.parse('{"command":"true","__proto__":{"envelope":"full"}}') as object),
      { jsonrpc: "2.0", id: 12, method: "tools/list", params: { _meta: wide } },
      { jsonrpc: "2.0", id: 13, method: "ping" },
    ],
  );
  for (const id of [2, 3, 10])
    expect([id, answers.get(id)?.error?.code ?? answers.get(id)?.result?.isError]).toEqual([id, true]);
  for (const id of [6, 7, 8]) expect([id, answers.get(id)?.result?.isError]).toEqual([id, true]);
  expect(textOf(answers.get(9))).not.toContain("MOCK_KEY");
  expect(answers.get(13)).toMatchObject({ result: {} });
  expect(existsSync(outside)).toBe(false);
  const [threadId = ""] = await threadsOf(world);
  expect(await run(["verify", threadId], { world })).toMatchObject({ code: 0 });
});

test("S51: answers to nothing, ids twice, cancels of nothing and eras of no server change nothing", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  const answers = await answersOf(
    world,
    [],
    [
      hello("1999-01-01"),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      hello("2026-07-28"),
      { jsonrpc: "2.0", id: 99, result: { content: [] } },
      { jsonrpc: "2.0", id: 98, error: { code: 1, message: "no" } },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 55 } },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: { a: 1 } } },
      { jsonrpc: "2.0", method: "notifications/cancelled" },
      { jsonrpc: "2.0", method: "notifications/no-such", params: { _meta: null } },
      call(7, "thread_list", {}),
      call(7, "thread_list", {}),
      { jsonrpc: "2.0", id: 8, method: "ping" },
    ],
  );
  expect(answers.get(1)).toMatchObject({ result: { protocolVersion: "2025-11-25" } });
  expect(answers.get(7)?.result?.isError).not.toBe(true);
  expect(answers.get(8)).toMatchObject({ result: {} });
  expect(await run(["threads", "list", "--json"], { world })).toMatchObject({ code: 0, stdout: "" });
});

test("S52: over HTTP a session is of the token that began it, and an unknown era is refused", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  const made = await run(["token", "add", "user", "una"], { world });
  const una = made.stdout.trim().split(/\s+/).at(-1) ?? "";
  await using served = await startServe(world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  const send = async (body: object, token: string, headers: Record<string, string> = {}) =>
    fetch(`${served.url}/mcp/envelopes/edit`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
    });
  const begun = await send(hello("2025-11-25"), served.token);
  const session = begun.headers.get("mcp-session-id") ?? "";
  expect([begun.status, session]).toEqual([200, expect.stringMatching(/.{16}/)]);
  const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
  const statuses = [
    await send(list, una, { "mcp-session-id": session }),
    await send(list, served.token, { "mcp-session-id": session, "mcp-protocol-version": "1999-01-01" }),
    await send(list, served.token, { "mcp-session-id": session, "mcp-protocol-version": "2026-07-28" }),
    await send(list, served.token, { "mcp-session-id": `${session}x` }),
    await send(list, served.token, { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([404, 400, 400, 404, 200]);
  await using _unharmed = await openMcpHttp(served, { path: "/mcp/envelopes/explore" });
});
