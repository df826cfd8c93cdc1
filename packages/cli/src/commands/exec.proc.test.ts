import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";

interface Line {
  readonly type: string;
  readonly item?: Readonly<Record<string, unknown>>;
  readonly [key: string]: unknown;
}

function jsonLines({ stdout }: Ran): readonly Line[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line): Line => JSON.parse(line));
}

/** Names a server on loopback as the provider, the way a user would. */
async function pointAt(world: World, server: ModelServer, wire = "responses"): Promise<void> {
  const base = wire === "anthropic" ? server.url : `${server.url}/v1`;
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "${base}"\nwire_api = "${wire}"\nenv_key = "MOCK_KEY"\nrequest_max_retries = 0\nstream_max_retries = 2\n`,
  );
}
const KEY = { MOCK_KEY: "test-key-of-the-mock" };

const RUN_ONE = JSON.stringify([
  { reasoning: "Thinking about it", calls: [{ tool: "exec_command", args: { cmd: "echo hello; exit 3" } }] },
  { text: "It printed hello." },
]);

test("a turn against a real HTTP model prints the answer alone on stdout and the work on stderr", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: JSON.parse(RUN_ONE) });
  await pointAt(world, server);
  const ran = await run(["exec", "run it"], { world, env: KEY });
  expect(ran).toMatchObject({ code: 0, stdout: "It printed hello.\n" });
  for (const text of [
    `--------\nworkdir: ${world.workspace}\nmodel: gpt-5.5\nprovider: mock\napproval: never\nsandbox: read-only`,
    "reasoning effort: none\nsession id: ",
    "--------\nuser\n| run it\n",
    "Thinking about it",
    "$ echo hello; exit 3",
    "| hello\n",
    "exit 3",
  ]) {
    expect(ran.stderr).toContain(text);
  }
  expect(ran.stderr).toMatch(
    /\n=#= completed\ntokens used\n\d+\n.* tokens in.*cost unknown\nrecord: heddle threads show [0-9a-f-]{36}\nresume: heddle exec resume [0-9a-f-]{36}\n$/,
  );
  expect(server.requests).toHaveLength(2);
  expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${KEY.MOCK_KEY}`);
});

test("--json prints the lines of codex exec, and nothing else on stdout", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: JSON.parse(RUN_ONE) });
  await pointAt(world, server);
  const ran = await run(["exec", "--experimental-json", "run it"], { world, env: KEY });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const lines = jsonLines(ran);
  expect(lines.map(({ type, item }) => (item === undefined ? type : `${type} ${String(item["type"])}`))).toEqual([
    "thread.started",
    "turn.started",
    "item.completed reasoning",
    "item.started command_execution",
    "item.completed command_execution",
    "item.completed agent_message",
    "turn.completed",
  ]);
  expect(lines[4]?.item).toMatchObject({ id: "item_1", aggregated_output: "hello\n", exit_code: 3, status: "failed" });
});

test("the scripted model is said plainly, and its files are written by the real tools in the sandbox", async () => {
  await using world = await openWorld();
  const script = await world.file(
    "script.json",
    JSON.stringify([
      { calls: [{ tool: "bash", args: { command: "echo made > made.txt; echo x > ../escaped.txt" } }] },
      { text: "ok" },
    ]),
  );
  const ran = await run(["exec", "-s", "workspace-write", "--script", script, "make it"], { world });
  expect(ran).toMatchObject({ code: 0, stdout: "ok\n" });
  expect(ran.stderr).toContain(`the script ${script} is run, no model is used`);
  expect(await readFile(path.join(world.workspace, "made.txt"), "utf8")).toBe("made\n");
  await expect(readFile(path.join(world.root, "escaped.txt"))).rejects.toThrow("ENOENT");
});

test("a prompt argument leaves an open standard input alone; without one it is the prompt", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  await pointAt(world, server);
  expect(await run(["exec", "from argument"], { world, env: KEY, stdin: null })).toMatchObject({ code: 0 });
  expect(await run(["exec"], { world, env: KEY, stdin: "from stdin" })).toMatchObject({ code: 0 });
  expect(await run(["exec", "look", "-"], { world, env: KEY, stdin: "piped" })).toMatchObject({ code: 0 });
  const bodies = server.requests.map(({ body }) => JSON.stringify(body));
  expect(bodies[0]).toContain("from argument");
  expect(bodies[1]).toContain("from stdin");
  expect(bodies[2]).toContain("look\\n\\n<stdin>\\npiped\\n</stdin>");
});

test("-o holds the answer without a line end, and is empty after a turn that gave none", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({
    script: [{ text: "the answer" }],
    faults: [undefined, { kind: "status", status: 400, body: { error: { message: "no" } } }],
  });
  await pointAt(world, server);
  const file = path.join(world.root, "answer.txt");
  expect(await run(["exec", "-o", file, "ask"], { world, env: KEY })).toMatchObject({ code: 0 });
  expect(await readFile(file, "utf8")).toBe("the answer");
  const failed = await run(["exec", "-o", file, "ask again"], { world, env: KEY });
  expect(failed).toMatchObject({ code: 4, stdout: "" });
  expect(await readFile(file, "utf8")).toBe("");
});

test("a provider that fails to the end shows each retry and exits with the provider's code", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ faults: () => ({ kind: "status", status: 503 }) });
  await pointAt(world, server);
  const ran = await run(["exec", "--json", "ask"], { world, env: KEY });
  expect(ran.code).toBe(4);
  const lines = jsonLines(ran);
  expect(
    lines.filter(({ type, message }) => type === "error" && String(message).startsWith("Reconnecting...")),
  ).toHaveLength(2);
  expect(lines.at(-1)).toMatchObject({
    type: "turn.failed",
    status: "failed",
    error: { code: expect.stringMatching(/^provider\./) },
  });
  expect(server.requests).toHaveLength(3);
});

test("a rejected key exits with the code for authentication and does not show the key", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({
    faults: () => ({ kind: "status", status: 401, body: { error: { message: `bad ${KEY.MOCK_KEY}` } } }),
  });
  await pointAt(world, server);
  const ran = await run(["exec", "--json", "ask"], { world, env: KEY });
  expect(ran.code).toBe(3);
  expect(ran.stdout + ran.stderr).not.toContain(KEY.MOCK_KEY);
});

const SLEEP = JSON.stringify([{ calls: [{ tool: "bash", args: { command: "sleep 60" } }] }, { text: "never" }]);

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  test(`${signal} during a command ends the turn with its terminal event and exit code ${code} within 6 s`, async () => {
    await using world = await openWorld();
    const script = await world.file("script.json", SLEEP);
    await using running = start(["exec", "--json", "--script", script, "wait"], { world });
    await running.sees("item.started");
    const askedAt = performance.now();
    running.child.kill(signal);
    const ran = await running.ended;
    expect(performance.now() - askedAt).toBeLessThan(6000);
    expect(ran).toMatchObject({ code, signal: null });
    expect(jsonLines(ran).at(-1)).toMatchObject({
      type: "turn.failed",
      status: "interrupted",
      error: { code: "turn.interrupted", message: `interrupted by ${signal}` },
    });
  });
}

test("a stalled model is stopped by the first signal, long before its own deadline", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({
    script: [{ text: "x" }],
    faults: [{ kind: "stall", at: "after-headers" }],
  });
  await pointAt(world, server);
  await using running = start(["exec", "--json", "ask"], { world, env: KEY });
  const request = await server.arrived(0);
  running.child.kill("SIGINT");
  await request.closed;
  const ran = await running.ended;
  expect(ran).toMatchObject({ code: 130 });
  expect(jsonLines(ran).at(-1)).toMatchObject({ type: "turn.failed", status: "interrupted" });
});

test("--timeout stops the turn, says so, and exits 124", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", SLEEP);
  const ran = await run(["exec", "--json", "--timeout", "1", "--script", script, "wait"], { world });
  expect(ran).toMatchObject({ code: 124 });
  expect(ran.ms).toBeLessThan(7000);
  expect(jsonLines(ran).at(-1)).toMatchObject({
    type: "turn.failed",
    error: { code: "turn.timeout", message: "the time limit of 1 s is over" },
  });
});

test("--timeout also ends the wait for a prompt that never comes", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", SLEEP);
  const ran = await run(["exec", "--timeout", "0.3", "--script", script, "-"], { world, stdin: null });
  expect(ran).toMatchObject({ code: 124, stdout: "", stderr: "heddle: the time limit of 0.3 s is over\n" });
});

test("a reader of --json that goes away does not stop the turn, and the exit code is the turn's", async () => {
  await using world = await openWorld();
  const script = await world.file(
    "script.json",
    JSON.stringify([
      { calls: [{ tool: "bash", args: { command: "sleep 0.3; echo done > done.txt" } }] },
      { text: "ok" },
    ]),
  );
  await using running = start(["exec", "--json", "-s", "workspace-write", "--script", script, "go"], { world });
  await running.sees("thread.started");
  running.child.stdout?.destroy();
  const [code] = await once(running.child, "exit");
  expect(code).toBe(0);
  expect(await readFile(path.join(world.workspace, "done.txt"), "utf8")).toBe("done\n");
});

test("output that steers a terminal is escaped for people and stays whole in JSON", async () => {
  await using world = await openWorld();
  const script = await world.file(
    "script.json",
    JSON.stringify([
      { calls: [{ tool: "bash", args: { command: "printf '\\033]0;own\\007'" } }] },
      { text: "a\u202eb\u2028c" },
    ]),
  );
  const human = await run(["exec", "--color", "never", "--script", script, "go"], { world });
  expect(human.stderr).toContain("\\x1b]0;own\\x07");
  expect(human.stderr).not.toContain("\u001b");
  const json = await run(["exec", "--json", "--script", script, "go"], { world });
  for (const risky of ["\u202e", "\u2028", "\u001b"]) expect(json.stdout).not.toContain(risky);
  expect(jsonLines(json).find(({ item }) => item?.["type"] === "agent_message")?.item).toMatchObject({
    text: "a\u202eb\u2028c",
  });
});

test("--output-schema and -i reach the model", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: `{"a":1}` }] });
  await pointAt(world, server);
  const schema = await world.file(
    "schema.json",
    JSON.stringify({ type: "object", properties: { a: { type: "number" } } }),
  );
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  const image = await world.file("dot.png", png);
  const ran = await run(["exec", "--output-schema", schema, "-i", image, "look"], { world, env: KEY });
  expect(ran).toMatchObject({ code: 0, stdout: `{"a":1}\n` });
  const body = JSON.stringify(server.requests[0]?.body);
  expect(body).toContain("json_schema");
  expect(body).toContain(png.toString("base64"));
});

test("nothing in the workspace is configuration", async () => {
  await using world = await openWorld();
  await writeFile(path.join(world.workspace, ".env"), "OPENAI_API_KEY=from-the-workspace\n");
  await world.file("workspace/config.toml", `sandbox_mode = "danger-full-access"\n`);
  await world.file("workspace/.heddle/config.toml", `model_provider = "evil"\n`);
  const ran = await run(["exec", "hello"], { world });
  expect(ran).toMatchObject({ code: 3, stderr: expect.stringContaining("OPENAI_API_KEY") });
});

test("a second signal ends the process at once, even behind a reader that never reads", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", JSON.stringify([{ text: "x".repeat(1024 * 1024) }]));
  await using running = start(["exec", "--json", "--script", script, "go"], { world });
  running.child.stdout?.removeAllListeners("data").pause();
  await running.sees("no model is used");
  const askedAt = performance.now();
  const again = setInterval(() => running.child.kill("SIGTERM"), 100);
  const [code, signal] = await once(running.child, "exit");
  clearInterval(again);
  // One more may come when it is on its way out and listens no more; a shell sees the same.
  expect(code ?? signal).toBe(signal === null ? 143 : "SIGTERM");
  expect(performance.now() - askedAt).toBeLessThan(4000);
  running.child.stdout?.destroy();
});
