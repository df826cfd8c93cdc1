/** `process/*` and `fuzzyFileSearch/session*`: real commands and searches of a real connection, and what is left when it ends. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { list, refused, text, type ChatClient, type Received } from "../../test/chat-client.ts";
import { codexClient, openChatWorld, type ChatWorld } from "../../test/chat-world.ts";

const base64 = (words: string): string => Buffer.from(words).toString("base64");

function exited(client: ChatClient, processHandle: string): Promise<Received> {
  return client.waitFor(
    ({ method, params }) => method === "process/exited" && params?.["processHandle"] === processHandle,
  );
}

/** How many processes have this mark in their arguments. */
async function marked(mark: string): Promise<number> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return lines.filter((line) => line.split("\0").includes(mark)).length;
}

async function gone(mark: string): Promise<void> {
  while ((await marked(mark)) > 0) await pause(20);
}

function spawner(world: ChatWorld) {
  return (processHandle: string, command: readonly string[], more: object = {}) =>
    ({ method: "process/spawn", params: { processHandle, command, cwd: world.workspace, ...more } }) as const;
}

test("a process is answered when it runs, and its end comes with its output, streamed or kept", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const spawn = spawner(world);
  const run = async (...args: Parameters<typeof spawn>): Promise<Received["params"]> => {
    const { method, params } = spawn(...args);
    expect(await client.call(method, params)).toEqual({});
    return (await exited(client, params.processHandle)).params;
  };
  const end = { outputDrainTimedOut: false, stdoutCapReached: false, stderrCapReached: false, stdout: "", stderr: "" };
  expect(await run("kept", ["sh", "-c", "echo out; echo err >&2; exit 3"])).toEqual({
    ...end,
    processHandle: "kept",
    exitCode: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
  expect(await run("capped", ["printf", "1234567890"], { outputBytesCap: 4 })).toMatchObject({
    stdout: "1234",
    stdoutCapReached: true,
  });
  expect(await run("late", ["sleep", "60"], { timeoutMs: 50 })).toMatchObject({ exitCode: 124 });
  expect(await run("env", ["sh", "-c", "echo $FOO-$HOME"], { env: { FOO: "bar", HOME: null } })).toMatchObject({
    stdout: "bar-\n",
  });
  expect(await run("streamed", ["echo", "out"], { streamStdoutStderr: true })).toEqual({
    ...end,
    processHandle: "streamed",
    exitCode: 0,
  });
  expect((await client.topic("process/outputDelta")).params).toEqual({
    processHandle: "streamed",
    stream: "stdout",
    deltaBase64: base64("out\n"),
    capReached: false,
  });
  // In the sandbox of a turn with default settings: the workspace can be written, the home of Heddle not even be seen.
  expect(await run("sandbox", ["sh", "-c", `echo x > here && ls ${world.root}/home/heddle.db`])).toMatchObject({
    exitCode: 2,
  });
  expect(await readFile(path.join(world.workspace, "here"), "utf8")).toBe("x\n");
});

test("input, a terminal and its size, and an end by request", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const spawn = spawner(world);
  const start = async (...args: Parameters<typeof spawn>): Promise<void> => {
    const { method, params } = spawn(...args);
    expect(await client.call(method, params)).toEqual({});
  };
  await start("cat", ["cat"], { streamStdin: true });
  expect(await client.call("process/writeStdin", { processHandle: "cat", deltaBase64: base64("hey") })).toEqual({});
  expect(await client.call("process/writeStdin", { processHandle: "cat", closeStdin: true })).toEqual({});
  expect((await exited(client, "cat")).params).toMatchObject({ exitCode: 0, stdout: "hey" });
  await start("tty", ["sh", "-c", "stty size; read x; stty size"], { tty: true, size: { rows: 30, cols: 90 } });
  await client.waitFor(({ params }) => params?.["deltaBase64"] === base64("30 90\r\n"));
  expect(await client.call("process/resizePty", { processHandle: "tty", size: { rows: 10, cols: 20 } })).toEqual({});
  await client.call("process/writeStdin", { processHandle: "tty", deltaBase64: base64("\n") });
  await exited(client, "tty");
  const shown = client.received.filter(({ method }) => method === "process/outputDelta");
  const bytes = shown.map(({ params }) => Buffer.from(text(params, "deltaBase64"), "base64"));
  expect(Buffer.concat(bytes).toString()).toContain("10 20");
  await start("sleeper", ["sleep", "60"]);
  expect(await refused(client, "process/spawn", spawn("sleeper", ["true"]).params)).toBe(
    '-32600 duplicate active process handle: "sleeper"',
  );
  expect(await refused(client, "process/writeStdin", { processHandle: "sleeper", deltaBase64: "eA==" })).toBe(
    "-32600 stdin streaming is not enabled for this process",
  );
  const size = { rows: 1, cols: 1 };
  expect(await refused(client, "process/resizePty", { processHandle: "sleeper", size })).toBe(
    "-32600 failed to resize PTY: process is not attached to a PTY",
  );
  expect(await client.call("process/kill", { processHandle: "sleeper" })).toEqual({});
  expect((await exited(client, "sleeper")).params).toMatchObject({ exitCode: 137 });
  expect(await refused(client, "process/kill", { processHandle: "sleeper" })).toBe(
    '-32600 no active process for process handle "sleeper"',
  );
});

test("what cannot be started is refused, for each reason; inside a sandbox a missing program ends with 127", async () => {
  await using confined = await openChatWorld();
  const inside = await codexClient(confined);
  await inside.call("process/spawn", spawner(confined)("a", ["/no/such"]).params);
  expect((await exited(inside, "a")).params).toMatchObject({ exitCode: 127, stdout: "" });
  await using world = await openChatWorld({ settings: { sandboxMode: "danger-full-access" } });
  const client = await codexClient(world);
  const spawn = spawner(world);
  const missing = "-32603 failed to spawn process: No such file or directory (os error 2)";
  const cases: readonly (readonly [Parameters<typeof spawn>, string])[] = [
    [["a", []], "-32600 command must not be empty"],
    [["", ["true"]], "-32600 processHandle must not be empty"],
    [["a", ["/no/such"]], missing],
    [["a", ["/no/such"], { streamStdoutStderr: true }], missing],
    [["a", ["true"], { cwd: "/no/such" }], missing],
    [["a", ["true"], { cwd: "relative" }], "-32600 Invalid request: AbsolutePathBuf deserialized without a base path"],
    [["a", ["true"], { cwd: path.join(world.root, "home") }], `-32600 ${world.root}/home is not available here`],
    [["a", ["true"], { size: { rows: 1, cols: 1 } }], "-32602 process/spawn size requires tty: true"],
    [
      ["a", ["true"], { tty: true, size: { rows: 0, cols: 1 } }],
      "-32602 process size rows and cols must be greater than 0",
    ],
    [["a", ["true"], { timeoutMs: -1 }], "-32602 process/spawn timeoutMs must be non-negative, got -1"],
    [["a", ["a\0b"]], "-32600 command must not contain NUL bytes"],
  ];
  for (const [args, message] of cases) {
    expect([args, await refused(client, "process/spawn", spawn(...args).params)]).toEqual([args, message]);
  }
  expect(await refused(client, "process/writeStdin", { processHandle: "a" })).toBe(
    "-32602 process/writeStdin requires deltaBase64 or closeStdin",
  );
  expect(client.topics().filter((method) => method.startsWith("process/"))).toEqual([]);
  const acts = await world.heddle.journal.read({ stream: "host", after: 0 });
  const settled = acts.filter(({ body }) => body.type === "client.settled");
  expect(settled.map(({ body }) => body)).toEqual([
    expect.objectContaining({ outcome: "failed" }),
    expect.objectContaining({ outcome: "failed" }),
  ]);
});

test("processes end with their connection, and so many run at once", async () => {
  await using world = await openChatWorld({ settings: { sandboxMode: "danger-full-access" } });
  const client = await codexClient(world);
  const spawn = spawner(world);
  const answers = await Promise.all(
    Array.from({ length: 65 }, (_, index) => refused(client, "process/spawn", spawn(`p${index}`, ["true"]).params)),
  );
  expect(answers.filter((answer) => answer === "answered {}")).toHaveLength(64);
  expect(answers.at(-1)).toBe("-32600 a connection may run 64 commands at once");
  const mark = `${600_000 + Math.floor(Math.random() * 100_000)}`;
  await client.call("process/spawn", spawn("left", ["sleep", mark], { timeoutMs: null }).params);
  expect(await marked(mark)).toBeGreaterThan(0);
  client[Symbol.dispose]();
  await gone(mark);
});

test("a search follows what is typed; the last query counts", async () => {
  await using world = await openChatWorld();
  for (const name of ["alpha.txt", "alphabet.md", "gamma.ts"]) await writeFile(path.join(world.workspace, name), "");
  const client = await codexClient(world);
  const at = { sessionId: "s", roots: [world.workspace] };
  expect(await client.call("fuzzyFileSearch/sessionStart", at)).toEqual({});
  for (const query of ["a", "al", "alp"])
    client.socket.write(
      `${JSON.stringify({ id: query, method: "fuzzyFileSearch/sessionUpdate", params: { sessionId: "s", query } })}\n`,
    );
  const updated = await client.waitFor(
    ({ method, params }) => method === "fuzzyFileSearch/sessionUpdated" && params?.["query"] === "alp",
  );
  expect(list(updated.params, "files").map((file) => (file as { path: string }).path)).toEqual([
    "alpha.txt",
    "alphabet.md",
  ]);
  expect((await client.topic("fuzzyFileSearch/sessionCompleted")).params).toEqual({ sessionId: "s" });
  // Results of queries that were overtaken are not sent behind those of the last one.
  expect(client.received.indexOf(updated)).toBe(
    client.received.findLastIndex(({ method }) => method === "fuzzyFileSearch/sessionUpdated"),
  );
  await client.call("fuzzyFileSearch/sessionUpdate", { sessionId: "s", query: "" });
  expect((await client.waitFor(({ params }) => params?.["query"] === "")).params).toEqual({
    sessionId: "s",
    query: "",
    files: [],
  });
  const none = "-32600 fuzzy file search session not found: s";
  expect(await client.call("fuzzyFileSearch/sessionStop", { sessionId: "s" })).toEqual({});
  expect(await client.call("fuzzyFileSearch/sessionStop", { sessionId: "s" })).toEqual({});
  expect(await refused(client, "fuzzyFileSearch/sessionUpdate", { sessionId: "s", query: "x" })).toBe(none);
  const other = await codexClient(world);
  await client.call("fuzzyFileSearch/sessionStart", at);
  expect(await refused(other, "fuzzyFileSearch/sessionUpdate", { sessionId: "s", query: "x" })).toBe(none);
  const start = (sessionId: string, roots: readonly string[]) =>
    refused(client, "fuzzyFileSearch/sessionStart", { sessionId, roots });
  expect(await start("", at.roots)).toBe("-32600 sessionId must not be empty");
  expect(await start("t", [])).toBe(
    "-32603 failed to start fuzzy file search session: at least one search directory is required",
  );
  expect(
    await start(
      "t",
      Array.from({ length: 11 }, () => "/"),
    ),
  ).toContain("at most 10 search directories");
  for (let index = 0; index < 15; index += 1) expect(await start(`s${index}`, at.roots)).toBe("answered {}");
  expect(await start("one too many", at.roots)).toContain("a connection may have 16 searches");
});
