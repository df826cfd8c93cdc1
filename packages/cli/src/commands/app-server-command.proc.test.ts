import { readFile, stat } from "node:fs/promises";
import { expect, test } from "vitest";
import { at, connectTo, KEY, serve, serveOnSocket, text, type Client } from "../../test/app-server-client.ts";
import { openWorld, start, type World } from "../../test/heddle-process.ts";

const base64 = (words: string): string => Buffer.from(words).toString("base64");
const plain = (words: string): string => Buffer.from(words, "base64").toString();
const sh = (script: string): readonly string[] => ["sh", "-c", script];

async function opened(world: World) {
  const served = serve([], { world, env: KEY });
  await served.client.initialize({ experimentalApi: true });
  return served;
}

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

/** What was streamed, joined. */
function streamed(client: Client, processId: string, stream: string): string {
  const deltas = client.received.filter(
    ({ method, params }) =>
      method === "command/exec/outputDelta" && at(params, "processId") === processId && at(params, "stream") === stream,
  );
  return deltas.map((delta) => plain(text(delta, "params.deltaBase64"))).join("");
}

/** One that only waits to be collected is gone too. */
async function isGone(pid: number): Promise<boolean> {
  const found = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return found === "" || found.includes(") Z ");
}

test("command/exec answers exit code and both outputs, kept apart", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  expect(await client.call("command/exec", { command: sh("echo out; echo err >&2; exit 3") })).toEqual({
    exitCode: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
  const env = { FOO: "1", HOME: null };
  expect(await client.call("command/exec", { command: sh("echo $FOO-$HOME-$MOCK_KEY; pwd"), env, cwd: "." })).toEqual({
    exitCode: 0,
    stdout: `1--\n${world.workspace}\n`,
    stderr: "",
  });
  const lost = await client.call("command/exec", { command: ["no-such-binary"] });
  expect(lost).toMatchObject({ exitCode: 127, stdout: "" });
  expect(text(lost, "stderr")).toContain("no-such-binary");
  const lostOutside = { command: ["no-such-binary"], sandboxPolicy: { type: "dangerFullAccess" } };
  expect(await client.call("command/exec", lostOutside)).toMatchObject({ exitCode: 127 });
});

test("command/exec sees what shell_environment_policy lets through, a process everything else, and neither a key", async () => {
  await using world = await openWorld();
  await world.file(
    "home/config.toml",
    `model_provider = "mock"
[model_providers.mock]
base_url = "http://127.0.0.1:9/v1"
env_key = "MOCK_KEY"
[shell_environment_policy]
ignore_default_excludes = true
exclude = ["LEFT_*"]
set = { FROM_POLICY = "set", MOCK_KEY = "forged" }
`,
  );
  const env = { ...KEY, COPY: KEY.MOCK_KEY, JAVA_HOME: "/java", LEFT_OUT: "1", DB_PASSWORD: "seen" };
  await using served = serve([], { world, env });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const show = sh("echo $JAVA_HOME-$LEFT_OUT-$DB_PASSWORD-$FROM_POLICY-$MOCK_KEY-$COPY");
  expect(await client.call("command/exec", { command: show })).toMatchObject({ stdout: "/java--seen-set--\n" });
  await client.call("process/spawn", { processHandle: "one", command: show, cwd: world.workspace });
  expect((await client.note("process/exited")).params).toMatchObject({ stdout: "/java-1----\n" });
});

test("command/exec ends after timeoutMs with 124, and after command/exec/terminate with 137", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  expect(await client.call("command/exec", { command: ["sleep", "60"], timeoutMs: 200 })).toMatchObject({
    exitCode: 124,
  });
  const command = sh("setsid sleep 61 & echo $$; sleep 60");
  const params = { command, processId: "t", streamStdoutStderr: true, disableTimeout: true };
  const running = client.call("command/exec", params);
  await client.note("command/exec/outputDelta");
  expect(await client.call("command/exec/terminate", { processId: "t" })).toEqual({});
  expect(await running).toEqual({ exitCode: 137, stdout: "", stderr: "" });
  expect(await refused(client, "command/exec/terminate", { processId: "t" })).toBe(
    '-32600 no active command/exec for process id "t"',
  );
});

test("command/exec streams under the client's processId, and takes input by command/exec/write", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const cat = client.call("command/exec", {
    command: sh("cat; echo done >&2"),
    processId: "c",
    streamStdin: true,
    streamStdoutStderr: true,
  });
  expect(await client.call("command/exec/write", { processId: "c", deltaBase64: base64("hello ") })).toEqual({});
  expect(await refused(client, "command/exec", { command: ["true"], processId: "c" })).toBe(
    '-32600 duplicate active command/exec process id: "c"',
  );
  const last = { processId: "c", deltaBase64: Buffer.from([0xff, 0x0a]).toString("base64"), closeStdin: true };
  await client.call("command/exec/write", last);
  expect(await cat).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  expect(streamed(client, "c", "stdout")).toBe(`hello ${Buffer.from([0xff, 0x0a]).toString()}`);
  expect(streamed(client, "c", "stderr")).toBe("done\n");
});

test("command/exec cuts each output at its cap and says so", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const command = sh("printf 123456; printf abc >&2");
  expect(await client.call("command/exec", { command, outputBytesCap: 3 })).toEqual({
    exitCode: 0,
    stdout: "123",
    stderr: "abc",
    truncatedBytes: { stdout: 3, stderr: 0 },
  });
  await client.call("command/exec", { command, outputBytesCap: 3, processId: "s", streamStdoutStderr: true });
  const deltas = client.received.filter(({ method }) => method === "command/exec/outputDelta");
  const said = deltas.map(({ params }) => [
    at(params, "stream"),
    plain(text(params, "deltaBase64")),
    at(params, "capReached"),
  ]);
  expect(said).toContainEqual(["stdout", "123", true]);
  expect(said).toContainEqual(["stderr", "abc", false]);
  const flood = { command: sh("yes | head -c 9000000"), disableOutputCap: true };
  const kept = await client.call("command/exec", flood);
  expect(text(kept, "stdout")).toHaveLength(4 * 1024 * 1024);
  expect(at(kept, "truncatedBytes.stdout")).toBe(9_000_000 - 4 * 1024 * 1024);
  const whole = { ...flood, processId: "w", streamStdoutStderr: true };
  await client.call("command/exec", whole);
  expect(streamed(client, "w", "stdout")).toHaveLength(9_000_000);
});

test("command/exec: wrong params and refusals have the words and codes of the original", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const command = ["true"];
  const both = { permissionProfile: ":read-only", sandboxPolicy: { type: "readOnly" } };
  const cases: readonly (readonly [params: unknown, said: string])[] = [
    [{}, "-32600 Invalid request: missing field `command`"],
    [{ command: "ls" }, '-32600 Invalid request: invalid type: string "ls", expected a sequence'],
    [{ command: [] }, "-32600 command must not be empty"],
    [{ command, streamStdin: true }, "-32600 command/exec tty or streaming requires a client-supplied processId"],
    [{ command, tty: true }, "-32600 command/exec tty or streaming requires a client-supplied processId"],
    [{ command, size: { rows: 3, cols: 4 } }, "-32602 command/exec size requires tty: true"],
    [
      { command, tty: true, processId: "p", size: { rows: 0, cols: 4 } },
      "-32602 command/exec size rows and cols must be greater than 0",
    ],
    [{ command, timeoutMs: -1 }, "-32602 command/exec timeoutMs must be non-negative, got -1"],
    [
      { command, timeoutMs: 1, disableTimeout: true },
      "-32602 command/exec cannot set both timeoutMs and disableTimeout",
    ],
    [
      { command, outputBytesCap: 1, disableOutputCap: true },
      "-32602 command/exec cannot set both outputBytesCap and disableOutputCap",
    ],
    [{ command, ...both }, "-32600 `permissionProfile` cannot be combined with `sandboxPolicy`"],
    [{ command, cwd: "/no/such" }, "-32603 failed to spawn command: No such file or directory (os error 2)"],
    [{ command, cwd: world.home }, `-32600 ${world.home} is not available here`],
    [
      { command, permissionProfile: ":none" },
      "-32600 invalid permission profile: default_permissions refers to unknown built-in profile `:none`",
    ],
  ];
  for (const [params, said] of cases) expect(await refused(client, "command/exec", params)).toBe(said);
  const external = { command, sandboxPolicy: { type: "externalSandbox", networkAccess: "restricted" } };
  expect(await refused(client, "command/exec", external)).toContain("-32600 externalSandbox is not supported");
  expect(await refused(client, "command/exec/write", { processId: "x" })).toBe(
    "-32602 command/exec/write requires deltaBase64 or closeStdin",
  );
  expect(await refused(client, "command/exec/write", { processId: "x", deltaBase64: "%%" })).toBe(
    "-32602 invalid deltaBase64: Invalid symbol 37, offset 0.",
  );
  expect(await refused(client, "command/exec/resize", { processId: "x", size: { rows: 3, cols: 3 } })).toBe(
    '-32600 no active command/exec for process id "x"',
  );
  const running = client.call("command/exec", { command: ["sleep", "60"], processId: "q", disableTimeout: true });
  expect(await refused(client, "command/exec/write", { processId: "q", deltaBase64: "" })).toBe(
    "-32600 stdin streaming is not enabled for this command/exec",
  );
  expect(await refused(client, "command/exec/resize", { processId: "q", size: { rows: 3, cols: 3 } })).toBe(
    "-32600 failed to resize PTY: process is not attached to a PTY",
  );
  await client.call("command/exec/terminate", { processId: "q" });
  await running;
});

test("command/exec stays behind the wall it asks for: read-only unless said, never Heddle's home", async () => {
  await using world = await openWorld();
  await world.file("home/secret", "key of the house");
  await using served = await opened(world);
  const { client } = served;
  const write = { command: sh("echo a > w.txt") };
  expect(await client.call("command/exec", write)).not.toMatchObject({ exitCode: 0 });
  expect(await client.call("command/exec", { ...write, sandboxPolicy: { type: "readOnly" } })).not.toMatchObject({
    exitCode: 0,
  });
  await expect(stat(`${world.workspace}/w.txt`)).rejects.toThrow("ENOENT");
  const writable = { ...write, sandboxPolicy: { type: "workspaceWrite" } };
  expect(await client.call("command/exec", writable)).toMatchObject({ exitCode: 0 });
  expect(await readFile(`${world.workspace}/w.txt`, "utf8")).toBe("a\n");
  const hook = {
    command: sh("mkdir -p .git/hooks && echo x > .git/hooks/post-commit"),
    permissionProfile: ":workspace",
  };
  await client.call("command/exec", hook);
  await expect(stat(`${world.workspace}/.git/hooks/post-commit`)).rejects.toThrow("ENOENT");
  const look = { command: sh(`cat ${world.home}/secret; ls ${world.root}`), permissionProfile: ":workspace" };
  expect(JSON.stringify(await client.call("command/exec", look))).not.toContain("key of the house");
});

test("command/exec with tty gives a terminal of the requested size, which command/exec/resize changes", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  for (const [processId, type] of [
    ["walled", "readOnly"],
    ["open", "dangerFullAccess"],
  ] as const) {
    const script = `tty; stty size; read word; echo "got $word" "it's $1"; stty size; exit 5`;
    const params = { command: ["sh", "-c", script, "x", "a b"], processId, tty: true, size: { rows: 10, cols: 20 } };
    const running = client.call("command/exec", { ...params, sandboxPolicy: { type } });
    const resized = { processId, size: { rows: 30, cols: 33 } };
    const sees = (words: string) => client.waitFor(() => streamed(client, processId, "stdout").includes(words));
    await sees("10 20\r\n");
    expect(await client.call("command/exec/resize", resized)).toEqual({});
    await client.call("command/exec/write", { processId, deltaBase64: base64("k\n") });
    expect(await running).toEqual({ exitCode: 5, stdout: "", stderr: "" });
    expect(streamed(client, processId, "stdout")).toMatch(
      /^\/dev\/pts\/\d+\r\n10 20\r\nk\r\ngot k it's a b\r\n30 33\r\n$/,
    );
  }
  const lost = { command: ["no-such-binary"], processId: "lost", tty: true };
  expect(await client.call("command/exec", lost)).toMatchObject({ exitCode: 127 });
});

test("command/exec: what a client started ends with its connection, and with the server", async () => {
  await using world = await openWorld();
  await using server = await serveOnSocket(world);
  const start = async (client: Client): Promise<number> => {
    await client.initialize();
    const params = { command: sh("sleep 1000 & echo $!; wait"), processId: "s", streamStdoutStderr: true };
    const policy = { type: "dangerFullAccess" };
    client.send({ id: 77, method: "command/exec", params: { ...params, sandboxPolicy: policy, disableTimeout: true } });
    await client.note("command/exec/outputDelta");
    return Number(streamed(client, "s", "stdout"));
  };
  const first = await connectTo(server.socket);
  const pid = await start(first.client);
  expect(await isGone(pid)).toBe(false);
  first.socket.destroy();
  await expect.poll(() => isGone(pid), { timeout: 8_000 }).toBe(true);
  using second = await connectTo(server.socket);
  const other = await start(second.client);
  server.running.child.kill("SIGTERM");
  await server.running.ended;
  expect(await isGone(other)).toBe(true);
});

test("command/exec: a command does not reach the server's own socket, wherever it lies", async () => {
  await using world = await openWorld();
  const socket = `${world.workspace}/door.sock`;
  await using running = start(["app-server", "--listen", `unix://${socket}`], { world, env: KEY });
  await running.sees("listening on unix://");
  using connected = await connectTo(socket);
  const { client } = connected;
  await client.initialize({ experimentalApi: true });
  const knock = `require("net").connect(${JSON.stringify(socket)}).on("connect", () => process.exit(0)).on("error", () => process.exit(9))`;
  const command = [process.execPath, "-e", knock];
  for (const [permissionProfile, exitCode] of [
    [":read-only", 9],
    [":workspace", 9],
    [":danger-full-access", 0],
  ] as const) {
    expect(await client.call("command/exec", { command, permissionProfile })).toMatchObject({ exitCode });
  }
});

test("command/exec: a client that does not read holds its command back, and the server stays small and answers others", async () => {
  await using world = await openWorld();
  await using server = await serveOnSocket(world);
  using slow = await connectTo(server.socket);
  await slow.client.initialize();
  const params = { command: sh("yes"), processId: "f", streamStdoutStderr: true, disableOutputCap: true };
  slow.client.send({ id: 50, method: "command/exec", params: { ...params, disableTimeout: true } });
  await slow.client.note("command/exec/outputDelta");
  slow.socket.pause();
  using other = await connectTo(server.socket);
  await other.client.initialize();
  expect(await refused(other.client, "command/exec", { command: ["true"], permissionProfile: ":workspace" })).toBe(
    "-32600 command/exec.permissionProfile requires experimentalApi capability",
  );
  for (let count = 0; count < 5; count += 1) {
    expect(await other.client.call("command/exec", { command: ["echo", "on"] })).toMatchObject({ stdout: "on\n" });
  }
  const status = await readFile(`/proc/${server.running.child.pid}/status`, "utf8");
  expect(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1])).toBeLessThan(400_000);
  slow.socket.resume();
  await slow.client.call("command/exec/terminate", { processId: "f" });
  expect((await slow.client.waitFor(({ id, method }) => id === 50 && method === undefined)).result).toEqual({
    exitCode: 137,
    stdout: "",
    stderr: "",
  });
});
