/** `heddle mcp serve` when things go wrong: bad input, clients that do not read or leave, and the death of the server. */
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { LAUNCHER, run, start } from "../../test/heddle-process.ts";
import { countOf, eventsOf, openMcpStdio, threadsOf } from "../../test/mcp-client.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

const UNTIL_GO = {
  calls: [{ tool: "exec_command", args: { cmd: "until test -e go; do sleep 0.05; done; echo gone" } }],
};

const HELLO = [
  {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
].map((message) => JSON.stringify(message));

const ping = (id: unknown): string => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" });

test("lines that are no messages are answered one by one, and the next good one is carried out", async () => {
  await using mock = await openMockWorld({ script: [] });
  const lines = [
    ...HELLO,
    "not json",
    "[]",
    `[${ping(5)}]`,
    '{"jsonrpc":"2.0","id":7,"method":5}',
    '{"id":8,"method":"ping"}',
    '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":5}}',
    `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"thread_list","arguments":${"[".repeat(200)}${"]".repeat(200)}}}`,
    '{"jsonrpc":"2.0","id":11,"method":"no/such"}',
    "\u0000\u0001",
    "",
    ping(12),
  ];
  const ran = await run(["mcp", "serve"], { world: mock.world, stdin: `${lines.join("\n")}\n`, withinMs: 60_000 });
  expect(ran.code).toBe(0);
  const answers = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(answers.every(({ jsonrpc }) => jsonrpc === "2.0")).toBe(true);
  const codes = answers.map(({ id, error }) => [id, error?.code]);
  expect(codes.filter(([id]) => id === null).map(([, code]) => code)).toEqual([-32700, -32600, -32600, -32700]);
  expect(Object.fromEntries(codes.filter(([id]) => id !== null))).toEqual({
    1: undefined,
    7: -32600,
    8: -32600,
    9: -32602,
    10: -32600,
    11: -32601,
    12: undefined,
  });
});

test("a line of 64 MB is refused, takes no memory, and the client is disconnected", async () => {
  await using mock = await openMockWorld({ script: [] });
  await using running = start(["mcp", "serve"], { world: mock.world, stdin: null });
  const { stdin } = running.child;
  stdin?.write(`${HELLO.join("\n")}\n`);
  await running.sees('"serverInfo"');
  stdin?.write('{"jsonrpc":"2.0","id":2,"method":"');
  const piece = Buffer.alloc(1024 * 1024, "a");
  for (let count = 0; count < 66 && running.child.exitCode === null; count += 1) {
    await new Promise<void>((resolve) => stdin?.write(piece, () => resolve()));
  }
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  expect(stdout).toContain("longer than 16 MiB");
});

test("what a client starts ends with it, or finishes where it was asked to", async () => {
  await using mock = await openMockWorld({
    respond: ({ answers }) => (answers === 0 ? UNTIL_GO : { text: "finished" }),
  });
  const { world } = mock;
  const startIn = async (args: readonly string[]): Promise<string> => {
    await using heddle = await openMcpStdio({ world, args });
    const { threadId } = await heddle.call("thread_start", { prompt: "wait for go" });
    const before = mock.server.requests.length;
    await mock.server.arrived(Math.max(0, before - 1));
    if (args.includes("--finish")) await writeFile(path.join(world.workspace, "go"), "");
    return String(threadId);
  };
  const endsOf = async (threadId: string) =>
    (await eventsOf(world, threadId)).map(({ body }) => body).filter(({ type }) => type === "turn.completed");
  const cut = await startIn([]);
  expect(await endsOf(cut)).toMatchObject([{ status: "interrupted", failure: { code: "turn.interrupted" } }]);
  const finished = await startIn(["--finish"]);
  expect(await endsOf(finished)).toMatchObject([{ status: "completed" }]);
});

test("SIGTERM ends the session and the process; kill -9 in a call leaves one end, and the next start works", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    await using agent = await openMcpStdio({ world, args: ["--envelope", "edit"] });
    const began = Promise.withResolvers<void>();
    const call = agent.text("bash", { command: "echo began; sleep 300" }, { onprogress: () => began.resolve() });
    await began.promise;
    process.kill(agent.pid, signal);
    // Asked to end, it still says what came of the call.
    if (signal === "SIGTERM") expect(await call).toMatch(/^ERROR .*tool\.cancelled/);
    else await expect(call).rejects.toThrow();
    const closed = (): boolean => {
      try {
        process.kill(agent.pid, 0);
        return false;
      } catch {
        return true;
      }
    };
    await expect.poll(closed, { timeout: 15_000 }).toBe(true);
    // The next process that opens the home closes what a dead one left.
    await using next = await openMcpStdio({ world });
    const [threadId = ""] = await threadsOf(world);
    await expect.poll(() => countOf(world, threadId, "turn.completed"), { timeout: 15_000 }).toBe(1);
    const status = signal === "SIGTERM" ? "completed" : "interrupted";
    expect(await next.call("thread_wait", { threadId })).toMatchObject({ status });
    expect(await countOf(world, threadId, "envelope.left")).toBe(1);
  }
});

test("a client that does not read is disconnected before memory fills", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  const child = spawn(process.execPath, [LAUNCHER, "mcp", "serve"], {
    cwd: world.workspace,
    env: { ...world.env, ...MOCK_KEY },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  child.stdin.on("error", () => undefined);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdin.write(`${HELLO.join("\n")}\n`);
  for (let id = 2; id < 5_000; id += 1) {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list" })}\n`);
  }
  expect(await ended).toBe(0);
  expect(said).toContain("a client that does not read was disconnected");
});
