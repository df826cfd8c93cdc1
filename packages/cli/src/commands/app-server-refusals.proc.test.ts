import { startModelServer } from "@heddle/models/testing";
import { describeMethods } from "@heddle/server/methods";
import { expect, test } from "vitest";
import { KEY, pointAt, serve, text } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

const NONE = "00000000-0000-0000-0000-000000000000";

test("W1: refusals are those of the original, and none of them ends the connection", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "ok" }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  const refused = async (method: string, params: unknown): Promise<string> => {
    const { error } = await client.ask(method, params);
    return `${error?.code} ${error?.message}`;
  };
  expect(await refused("thread/list", {})).toBe("-32600 Not initialized");
  client.send("this is not json");
  client.send({ id: 900, foo: 1 });
  client.send({ jsonrpc: "2.0", id: 901, method: "model/list", params: {} });
  expect((await client.waitFor(({ id }) => id === 901)).error?.message).toBe("Not initialized");
  expect(await refused("initialize", {})).toBe("-32600 Invalid request: missing field `clientInfo`");
  const unfit = { clientInfo: { name: "a\r\nb", version: "1" } };
  expect(await refused("initialize", unfit)).toBe(
    "-32600 Invalid clientInfo.name: 'a\r\nb'. Must be a valid HTTP header value.",
  );
  await client.initialize();
  const input = [{ type: "text", text: "x" }];
  const cases: readonly (readonly [method: string, params: unknown, message: string])[] = [
    ["initialize", { clientInfo: { name: "x", version: "1" } }, "Already initialized"],
    ["turn/start", { threadId: 5 }, "Invalid request: invalid type: integer `5`, expected a string"],
    ["turn/start", { threadId: NONE }, "Invalid request: missing field `input`"],
    [
      "turn/start",
      { threadId: "nope", input: [] },
      "invalid thread id: invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `n` at 1",
    ],
    ["turn/start", { threadId: NONE, input }, `thread not found: ${NONE}`],
    ["turn/interrupt", { threadId: NONE, turnId: "x" }, `thread not found: ${NONE}`],
    ["thread/read", { threadId: NONE }, `thread not loaded: ${NONE}`],
    ["thread/resume", { threadId: NONE }, `no rollout found for thread id ${NONE}`],
    ["thread/search", { searchTerm: "x" }, "thread/search requires experimentalApi capability"],
    ["thread/start", { historyMode: "paginated" }, "thread/start.historyMode requires experimentalApi capability"],
    [
      "thread/start",
      { approvalPolicy: "on-failure" },
      "Invalid request: unknown variant `on-failure`, expected one of `untrusted`, `on-request`, `granular`, `never`",
    ],
    [
      "thread/start",
      { sandbox: "workspaceWrite" },
      "Invalid request: unknown variant `workspaceWrite`, expected one of `read-only`, `workspace-write`, `danger-full-access`",
    ],
    ["thread/start", { cwd: "/no/such/dir" }, "/no/such/dir does not exist; make it or name another folder"],
  ];
  for (const [method, params, message] of cases) expect(await refused(method, params)).toBe(`-32600 ${message}`);
  expect(await refused("no/such", {})).toMatch(
    /^-32600 Invalid request: unknown variant `no\/such`, expected one of `initialize`, `server\/diagnostics`, .*`fuzzyFileSearch\/sessionStop`$/,
  );
  const missing = describeMethods().filter(({ isSupported, isExperimental }) => !isSupported && !isExperimental);
  expect(missing.length).toBeGreaterThan(0);
  for (const { name, note } of missing) {
    expect((await client.ask(name, { threadId: NONE })).error).toEqual({
      code: -32601,
      message: `${name} is not supported by heddle app-server: ${note}`,
      data: { code: "door.unsupported", method: name, instead: note.slice(note.indexOf("; use ") + "; use ".length) },
    });
  }
  const begun = await client.call("thread/start", { ephemeral: true, someUnknown: 1 });
  expect(begun).toMatchObject({ thread: { ephemeral: true, path: null } });
  const threadId = text(begun, "thread.id");
  client.send({ id: "abc", method: "thread/loaded/list", params: {} });
  expect((await client.waitFor(({ id }) => id === "abc")).result).toEqual({ data: [threadId], nextCursor: null });
  client.send({ id: "resp-unknown", result: {} });
  client.send({ method: "no/such/notification", params: {} });
  client.end();
  const { code, stderr } = await running.ended;
  expect(code).toBe(0);
  expect(stderr.match(/a line that is not a message was skipped/g)).toHaveLength(2);
  expect((await run(["threads", "list", "--all"], { world, env: KEY })).stdout).not.toContain(threadId);
});

test("S42: a line without an end is refused, then cut off, and the server does not grow with it", async () => {
  await using world = await openWorld();
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  const piece = "x".repeat(1024 * 1024);
  for (let count = 0; count < 65; count += 1) running.child.stdin?.write(piece);
  expect((await client.waitFor(({ error }) => error !== undefined)).error).toEqual({
    code: -32600,
    message: "Invalid request: the message is longer than 16 MiB",
  });
  expect((await running.ended).code).toBe(0);
});

test("S44: too many calls at once are refused one by one, and the rest answered", async () => {
  await using world = await openWorld();
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  for (let id = 10_000; id < 13_000; id += 1) client.send({ id, method: "thread/list", params: {} });
  client.end();
  await running.ended;
  const answers = client.received.filter(({ id }) => typeof id === "number" && id >= 10_000);
  expect(answers).toHaveLength(3_000);
  const refused = answers.filter(({ error }) => error?.code === -32001);
  expect(refused[0]?.error?.message).toBe("Server overloaded; retry later.");
  expect(answers.length - refused.length).toBeGreaterThanOrEqual(512);
});

test("W8: what cannot be listened on, and other machines can reach, is said at once", async () => {
  await using world = await openWorld();
  const cases: readonly (readonly [args: readonly string[], message: string])[] = [
    [["--listen", "ws://0.0.0.0:0"], "0.0.0.0 can be reached from other machines"],
    [
      ["--listen", "ws://example.org:1"],
      "must be one of stdio://, unix://, unix://PATH, ws://IP:PORT, wss://IP:PORT, off",
    ],
    [["--listen", `unix://${world.workspace}`], "exists and is not a socket"],
    [["--listen", "ws://127.0.0.1:0", "--ws-token-sha256", "abc"], "takes the 64 hexadecimal digits"],
    [["--listen", "ws://127.0.0.1:0", "--ws-token-file", "none"], "there is no token file"],
    [["word"], "app-server takes no arguments"],
  ];
  for (const [args, message] of cases) {
    const ran = await run(["app-server", ...args], { world, env: KEY });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(message);
  }
});
