import { readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { CodexExecLine } from "@heddle/dialects/exec-schema";
import { expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

test("options may stand before exec, between, and after; the later one wins", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const { world } = mock;
  const ran = await run(
    ["-a", "never", "--search", "-c", "model=gpt-5", "-m", "gpt-5-mini", "exec", "--json", "-m", "gpt-5.5", "go"],
    { world, env: MOCK_KEY },
  );
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(mock.lastRequest()).toContain(`"model":"gpt-5.5"`);
  expect(await run(["e", "-m", "gpt-5-mini", "--json", "go"], { world, env: MOCK_KEY })).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).toContain(`"model":"gpt-5-mini"`);
});

test("every option of codex exec 0.166 is understood; those without effect say so once", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const ran = await mock.exec([
    "--json",
    "--strict-config",
    "--ignore-rules",
    "--skip-git-repo-check",
    "--approve-for-me",
    "--enable",
    "a",
    "--enable",
    "b",
    "--disable",
    "a",
    "--dangerously-bypass-hook-trust",
    "--thread-source",
    "user",
    "--cyber-access-program",
    "standard",
    "--color",
    "never",
    "-c",
    "web_search=disabled",
    "-c",
    `approval_policy="never"`,
    "-c",
    "features.x=true",
    "go",
  ]);
  expect(ran).toMatchObject({
    code: 0,
    stderr:
      "heddle: keys of the configuration that have no effect here: -c features.a, -c features.b, -c features.x\n" +
      "heddle: --cyber-access-program has no effect\n",
  });
  const gone = path.join(mock.world.root, "gone");
  expect(
    await mock.exec(["-c", "model_providers.mock.supports_websockets=false", "--add-dir", gone, "go"]),
  ).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      `no effect here: -c model_providers.mock.supports_websockets\nheddle: --add-dir ${gone} does not exist`,
    ),
  });
  expect(await mock.exec(["--worktree", "go"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("git worktree add --detach ../copy && heddle exec -C ../copy"),
  });
});

test("what the Codex SDK sends is taken as it is sent: address, key and caller included", async () => {
  await using mock = await openMockWorld({ script: [{ text: `{"a":1}` }] });
  const { world, server } = mock;
  const schema = await world.file("schema.json", `{"type":"object","properties":{"a":{"type":"number"}}}`);
  const image = await world.file("dot.png", PNG);
  const ran = await run(
    [
      "exec",
      "--experimental-json",
      "--config",
      `openai_base_url="${server.url}/v1"`,
      "--model",
      "gpt-5.5",
      "--sandbox",
      "workspace-write",
      "--cd",
      world.workspace,
      "--add-dir",
      world.root,
      "--skip-git-repo-check",
      "--output-schema",
      schema,
      "--config",
      `model_reasoning_effort="high"`,
      "--config",
      "sandbox_workspace_write.network_access=true",
      "--config",
      `web_search="disabled"`,
      "--config",
      `approval_policy="never"`,
      "--ignore-user-config",
      "--image",
      image,
    ],
    {
      world,
      stdin: "describe",
      env: { CODEX_API_KEY: "sdk-key", CODEX_INTERNAL_ORIGINATOR_OVERRIDE: "codex_sdk_ts" },
    },
  );
  expect(ran).toMatchObject({ code: 0, stderr: "Reading prompt from stdin...\n" });
  expect(server.requests[0]?.headers).toMatchObject({
    authorization: "Bearer sdk-key",
    originator: "codex_sdk_ts",
    "user-agent": expect.stringMatching(/^codex_sdk_ts\/0\.166\.0 \(.+; .+\) heddle$/),
  });
  expect(mock.lastRequest()).toContain(PNG.toString("base64"));
  expect(mock.lastRequest()).toContain(`"effort":"high"`);
  const list = await run(["threads", "list", "--json"], { world });
  expect(JSON.parse(list.stdout)).toMatchObject({ origin: "codex_sdk_ts" });
});

test("a library written for Codex is given Codex's fields alone, whatever the model says to its schema and its images are", async () => {
  await using mock = await openMockWorld({ script: [{ text: "no JSON" }] });
  const schema = await mock.world.file("schema.json", `{"type":"object","properties":{"a":{"type":"number"}}}`);
  const text = await mock.world.file("text.png", "no image");
  const ran = await mock.exec(["--json", "--output-schema", schema, "-i", text, "-i", "gone.png", "--", "go"], {
    env: { CODEX_INTERNAL_ORIGINATOR_OVERRIDE: "codex_sdk_ts" },
  });
  expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining("text.png is not a PNG") });
  expect(mock.lastRequest()).toContain("gone.png does not exist");
  expect(mock.server.requests).toHaveLength(1);
  expect(jsonLines(ran).map((line) => Object.keys(line))).toEqual([
    ["type", "thread_id"],
    ["type"],
    ["type", "item"],
    ["type", "usage"],
  ]);
  const refused = await mock.exec(["--json", "--script", "gone.json", "go"], {
    env: { CODEX_INTERNAL_ORIGINATOR_OVERRIDE: "codex_sdk_ts" },
  });
  expect(refused.code).toBe(1);
});

test("15.11: a caller may call itself what it likes; a name that is none is passed over, as Codex does", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const long = "x".repeat(300);
  for (const [name, told] of [
    ["Codex Desktop", "Codex Desktop"],
    [" Éditeur ", "_diteur"],
    [long, long.slice(0, 64)],
    ["evil\r\nx-more: 1", undefined],
    ["\u001b[31m", undefined],
    [" ", undefined],
  ] as const) {
    const ran = await mock.exec(["--json", "go"], { env: { CODEX_INTERNAL_ORIGINATOR_OVERRIDE: name } });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(Object.keys(jsonLines(ran)[1] ?? {})).toEqual(["type"]);
    const { headers } = mock.server.requests.at(-1) ?? {};
    expect(headers?.["originator"]).toBe(told);
    expect(headers).not.toHaveProperty("x-more");
    const list = await run(["threads", "list", "--json"], { world: mock.world });
    expect(list).toMatchObject({ code: 0 });
  }
});

test("images come in lists, one after another, and repeated; the prompt after them stays the prompt", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  for (const name of ["a", "b", "c", "d"]) await mock.world.file(`workspace/${name}.png`, PNG);
  expect(await mock.exec(["-i", "a.png,b.png", "c.png", "-i", "d.png", "what are these"])).toMatchObject({ code: 0 });
  expect(mock.lastRequest().split(PNG.toString("base64"))).toHaveLength(5);
  expect(mock.lastRequest()).toContain("what are these");
  expect(await mock.exec(["-i", "a.png,gone.png", "x"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("gone.png does not exist"),
  });
});

test("a local model is asked where it is served", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const env = { CODEX_OSS_BASE_URL: `${mock.server.url}/v1` };
  expect(await mock.exec(["--oss", "-m", "qwen3", "go"], { env })).toMatchObject({ code: 0, stdout: "ok\n" });
  expect(mock.server.requests[0]?.path).toBe("/v1/chat/completions");
  expect(mock.lastRequest()).toContain(`"model":"qwen3"`);
});

test("a trusted project in Codex's config may be written and need not be a repository; nothing is ever marked", async () => {
  await using world = await openWorld();
  const bare = path.dirname(await world.file("bare/readme.md", "x"));
  const script = await world.file(
    "script.json",
    JSON.stringify([{ calls: [{ tool: "bash", args: { command: "echo x > made.txt" } }] }, { text: "ok" }]),
  );
  const args = ["exec", "--script", script, "go"];
  const refused = await run(args, { world, cwd: bare });
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Not inside a trusted directory and --skip-git-repo-check was not specified."),
  });
  const config = await world.file("codex/config.toml", `[projects."${bare}"]\ntrust_level = "trusted"\n`);
  const trusted = await run(args, { world, cwd: bare });
  expect(trusted).toMatchObject({ code: 0, stderr: expect.stringContaining("sandbox: workspace-write") });
  expect(await readFile(path.join(bare, "made.txt"), "utf8")).toBe("x\n");
  expect(await readFile(config, "utf8")).toBe(`[projects."${bare}"]\ntrust_level = "trusted"\n`);
  const other = await run(args, { world });
  expect(other.stderr).toContain("sandbox: read-only");
});

test("with --deltas text and output are shown as they grow, every line in the published schema", async () => {
  const long = "word ".repeat(400);
  await using mock = await openMockWorld({
    script: [
      { calls: [{ tool: "exec_command", args: { cmd: "for i in 1 2 3; do echo $i; sleep 0.1; done" } }] },
      { text: long },
    ],
    faults: [undefined, { kind: "pieces", bytes: 2000 }],
  });
  const ran = await mock.exec(["--json", "--deltas", "go"]);
  expect(ran).toMatchObject({ code: 0 });
  const lines = jsonLines(ran);
  for (const line of lines) expect(CodexExecLine.parse(line)).toEqual(line);
  const outputs = lines.filter(({ type, item }) => type === "item.updated" && item?.["type"] === "command_execution");
  expect(outputs.length).toBeGreaterThan(0);
  for (const { item } of outputs) expect("1\n2\n3\n".startsWith(String(item?.["aggregated_output"]))).toBe(true);
  const messages = lines.filter(({ item }) => item?.["type"] === "agent_message");
  expect(messages.map(({ type }) => type)).toEqual([
    "item.started",
    ...messages.slice(1, -1).map(() => "item.updated"),
    "item.completed",
  ]);
  for (const { item } of messages) expect(long.startsWith(String(item?.["text"]))).toBe(true);
});

test("refused and unknown tool calls are items with their reason", async () => {
  await using mock = await openMockWorld({
    script: [
      { calls: [{ tool: "no_such_tool", args: {} }] },
      { calls: [{ tool: "exec_command", args: { cmd: 5 } }] },
      { calls: [{ tool: "apply_patch", args: "*** Begin Patch\n*** Add File: x.txt\n+x\n*** End Patch" }] },
      { text: "ok" },
    ],
  });
  const ran = await mock.exec(["--json", "go"]);
  expect(ran.code).toBe(0);
  const items = jsonLines(ran).flatMap(({ type, item }) =>
    type === "item.completed" && item !== undefined ? [item] : [],
  );
  expect(items.map((item) => item["type"])).toHaveLength(4);
  for (const item of items.slice(0, 3)) expect(["failed", "declined"]).toContain(item["status"]);
});

test("--codex-exit-codes says 1 where Codex would, and stays out of the way of success and bad usage", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const code = async (args: readonly string[], env = {}): Promise<number | null> =>
    (await mock.exec(args, { env })).code;
  expect(await code(["--codex-exit-codes", "go"])).toBe(0);
  expect(await code(["go"], { MOCK_KEY: "" })).toBe(3);
  expect(await code(["--codex-exit-codes", "go"], { MOCK_KEY: "" })).toBe(1);
  expect(await code(["--codex-exit-codes", "resume", "gone", "go"])).toBe(1);
  expect(await code(["--codex-exit-codes", "--jsno", "go"])).toBe(2);
});

test("-o replaces a file whole, and is written through a link of the user", async () => {
  await using mock = await openMockWorld({ script: [{ text: "answer" }] });
  const real = await mock.world.file("real.txt", "old");
  const link = path.join(mock.world.root, "link.txt");
  await symlink(real, link);
  expect(await mock.exec(["-o", link, "go"])).toMatchObject({ code: 0 });
  expect(await readFile(real, "utf8")).toBe("answer");
});

test("an -o that cannot be written after all is a failure beside the turn's own end", async () => {
  await using mock = await openMockWorld({
    script: [{ calls: [{ tool: "exec_command", args: { cmd: "rm -r out" } }] }, { text: "answer" }],
  });
  await mock.world.file("workspace/out/old.txt", "old");
  const ran = await mock.exec(["--json", "-s", "workspace-write", "-o", "out/last.txt", "go"]);
  expect(ran).toMatchObject({ code: 8, stderr: expect.stringContaining("last.txt could not be written") });
  expect(jsonLines(ran).slice(-2)).toMatchObject([{ type: "turn.completed" }, { type: "error", code: "store.failed" }]);
});

test("an answer that does not fit its schema, twice, ends with the code for it and leaves -o empty", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: `{"a":"no number"}` }) });
  const schema = await mock.world.file("schema.json", `{"type":"object","properties":{"a":{"type":"number"}}}`);
  const file = path.join(mock.world.root, "last.txt");
  const ran = await mock.exec(["--json", "--output-schema", schema, "-o", file, "go"]);
  expect(ran.code).toBe(5);
  expect(jsonLines(ran).at(-1)).toMatchObject({ type: "turn.failed", error: { code: "schema.violated" } });
  expect(mock.server.requests).toHaveLength(2);
  expect(await readFile(file, "utf8")).toBe("");
});
