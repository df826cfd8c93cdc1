import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { RunFinished, RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";

const KEY = { MOCK_KEY: "test-key-of-the-mock" };

async function pointAt(world: World, url: string, attempts = 1): Promise<void> {
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "${url}/v1"\nenv_key = "MOCK_KEY"\nrequest_max_retries = 0\nstream_max_retries = ${attempts - 1}\n`,
  );
}

/** The result is there, whole and as published, and agrees with the process and the last line of the stream. */
async function resultOf(world: World, ran: Pick<Ran, "code" | "stdout">): Promise<RunResult> {
  const result = RunResult.parse(JSON.parse(await readFile(path.join(world.root, "result.json"), "utf8")));
  expect(result.exit_code).toBe(ran.code);
  expect(result.reason === undefined).toBe(result.status === "completed");
  const last = RunFinished.parse(JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? ""));
  const { status, exit_code, run_id, thread_id, reason, retryable } = result;
  expect(last).toEqual({
    type: "heddle.run.finished",
    status,
    exit_code,
    run_id,
    thread_id,
    retryable,
    ...(reason === undefined ? {} : { reason }),
  });
  return result;
}

async function scripted(world: World, script: unknown): Promise<string> {
  return world.file("script.json", JSON.stringify(script));
}

const batch = (world: World, ...more: readonly string[]): string[] => [
  "exec",
  "--json",
  "--result-json",
  path.join(world.root, "result.json"),
  ...more,
];

test("R1: a run that succeeds: the answer, what it used, and the line that says it is over", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "fine", usage: { inputTokens: 30, outputTokens: 4 } }]);
  const manifest = await world.file("manifest.json", `{"job": 7, "tags": ["a"]}`);
  const prompt = await world.file("prompt.md", "do it\n");
  const ran = await run(
    batch(world, "--script", script, "--run-id", "job-7", "--manifest", manifest, "--prompt-file", prompt),
    { world },
  );
  const result = await resultOf(world, ran);
  expect(result).toMatchObject({
    status: "completed",
    exit_code: 0,
    run_id: "job-7",
    response: "fine",
    is_response_final: true,
    num_turns: 1,
    usage: { input_tokens: 30, output_tokens: 4 },
    thread_usage: { input_tokens: 30, output_tokens: 4 },
    cost: { usd: 0 },
    model: "scripted",
    provider: "scripted",
    manifest: { job: 7, tags: ["a"] },
    attempts: [{ attempt: 1, mode: "first", status: "completed" }],
  });
  expect(result.thread_id).toMatch(/^[0-9a-f-]{36}$/);
});

test("without a batch option the stream ends as that of codex exec does", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "fine" }]);
  const ran = await run(["exec", "--json", "--timeout", "60", "--script", script, "go"], { world });
  expect(ran.code).toBe(0);
  expect(JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ type: "turn.completed" });
});

for (const [name, flags, reason, code] of [
  ["a refused option", ["--timeout", "soon"], "usage.invalid", 2],
  ["a refused batch option", ["--max-turns", "none"], "usage.invalid", 2],
  ["a run id that is no name", ["--run-id", "../up"], "usage.invalid", 2],
  ["a missing image with a known model", ["-i", "missing.png"], "usage.invalid", 2],
  ["a missing prompt file", ["--prompt-file", "missing.md"], "usage.invalid", 2],
  ["a missing folder", ["-C", "missing"], "workspace.missing", 2],
  ["a missing key", [], "auth.missing", 3],
  ["an unknown model", ["-m", "claude-sonnet-5-5", "-c", "model_provider=openai"], "model.unknown", 2],
  ["a thread that is not there", ["resume", "0000aaaa-0000-7000-8000-000000000000"], "thread.not-found", 2],
] as const) {
  test(`R1: ${name} ends before the turn, with a result`, async () => {
    await using world = await openWorld();
    const words = name === "a missing prompt file" ? [] : ["go"];
    const env = name.includes("model") || name.includes("thread") ? { OPENAI_API_KEY: "k" } : {};
    const ran = await run(batch(world, ...flags, ...words), { world, env });
    expect(ran.code).toBe(code);
    expect(await resultOf(world, ran)).toMatchObject({ status: "failed", reason, response: null, num_turns: 0 });
    expect(ran.stderr).toMatch(/^heddle: /);
  });
}

test("a configuration with a mistake ends before the turn, with a result", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", "modle = 1\n");
  const ran = await run(batch(world, "go"), { world });
  expect(await resultOf(world, ran)).toMatchObject({ exit_code: 2, reason: "config.invalid" });
});

const FORBIDDEN = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"';
const canForbid = spawnSync("unshare", ["--user", "--map-root-user", "sh", "-c", FORBIDDEN, "sh", "true"]).status === 0;

test.runIf(canForbid)(
  "S5: a host without a sandbox (namespaces forbidden by unshare) ends before the turn with a result, and doctor says what is missing",
  async () => {
    await using world = await openWorld();
    const script = await scripted(world, [{ text: "never" }]);
    const forbidden = (...words: readonly string[]): Promise<Ran> =>
      run(["--map-root-user", "sh", "-c", FORBIDDEN, "sh", process.execPath, LAUNCHER, ...words], {
        world,
        node: "unshare",
        launcher: "--user",
      });
    const ran = await forbidden(...batch(world, "--script", script, "go"));
    expect(await resultOf(world, ran)).toMatchObject({ exit_code: 8, reason: "sandbox.unavailable", num_turns: 0 });
    const doctor = await forbidden("doctor");
    expect(doctor.stdout).toMatch(
      /problem +sandbox namespaces .*\n +fix: allow user namespaces .*install bubblewrap.*\nproblem +sandbox bwrap /,
    );
  },
);

test("R1: a provider that fails gives its code, and says whether waiting may help", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ faults: () => ({ kind: "status", status: 503 }) });
  await pointAt(world, server.url);
  const busy = await run(batch(world, "go"), { world, env: KEY });
  expect(await resultOf(world, busy)).toMatchObject({ exit_code: 4, retryable: true, num_turns: 1 });
  await using rejecting = await startModelServer({ faults: () => ({ kind: "status", status: 400 }) });
  await pointAt(world, rejecting.url);
  const rejected = await run(batch(world, "go"), { world, env: KEY });
  expect(await resultOf(world, rejected)).toMatchObject({
    exit_code: 4,
    reason: "provider.rejected",
    retryable: false,
  });
});

test("each limit ends the run with code 6, says which, and keeps what was said", async () => {
  await using world = await openWorld();
  const call = { tool: "bash", args: { command: "true" } };
  const usage = { inputTokens: 900, outputTokens: 200 };
  const script = await scripted(world, [
    { text: "first words", calls: [call], usage },
    { text: "more", usage },
  ]);
  for (const [flags, details] of [
    [["--max-turns", "1"], { limit: "turns", allowed: 1, used: 1 }],
    [["--max-tokens", "1000"], { limit: "tokens", allowed: 1000, used: 1100 }],
  ] as const) {
    const ran = await run(batch(world, "--script", script, ...flags, "go"), { world });
    expect(await resultOf(world, ran)).toMatchObject({
      exit_code: 6,
      reason: "limit.reached",
      details,
      response: "first words",
      is_response_final: false,
      usage: { input_tokens: 900 },
    });
  }
});

test("a cost limit on a model without a known price is refused; on a known one it is counted", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({
    script: [{ text: "dear", usage: { inputTokens: 200_000, outputTokens: 10_000 } }],
  });
  await pointAt(world, server.url);
  const unknown = await run(batch(world, "--max-cost", "1", "go"), { world, env: KEY });
  expect(await resultOf(world, unknown)).toMatchObject({ exit_code: 2, reason: "usage.invalid" });
  expect(server.requests).toHaveLength(0);
  const [, hint = "", model = ""] = /(model_providers\.\S+\.prices\."(.*?)") = \{/.exec(unknown.stderr) ?? [];
  const priced = ["-c", `${hint}={ input = 5, output = 30 }`, "-m", model];
  const own = await run(batch(world, "--max-cost", "1", ...priced, "go"), { world, env: KEY });
  // 14: with a price of the owner's own.
  expect(await resultOf(world, own)).toMatchObject({
    exit_code: 6,
    details: { limit: "cost", allowed: 1, used: expect.closeTo(1.3, 5) },
  });
  await world.file("home/config.toml", `openai_base_url = "${server.url}/v1"\n`);
  const ran = await run(batch(world, "--max-cost", "1", "-m", "gpt-5.5", "go"), {
    world,
    env: { OPENAI_API_KEY: "k" },
  });
  expect(await resultOf(world, ran)).toMatchObject({
    exit_code: 6,
    details: { limit: "cost", allowed: 1, used: expect.closeTo(1.3, 1) },
    response: "dear",
  });
});

const SLEEP = [{ text: "waiting", calls: [{ tool: "bash", args: { command: "sleep 60" } }] }, { text: "never" }];

test("R2: the time limit and silence both end the run with code 124, and say which limit it was", async () => {
  await using world = await openWorld();
  const script = await scripted(world, SLEEP);
  const late = await run(batch(world, "--timeout", "1.5", "--script", script, "go"), { world });
  expect(await resultOf(world, late)).toMatchObject({
    exit_code: 124,
    status: "failed",
    reason: "turn.timeout",
    message: "the time limit of 1.5 s is over",
  });
  const idle = await run(batch(world, "--idle-timeout", "1", "--script", script, "go"), { world });
  expect(await resultOf(world, idle)).toMatchObject({
    exit_code: 124,
    reason: "turn.timeout",
    message: "nothing has happened for 1 s",
    response: "waiting",
  });
});

test("every byte of the model ends the silence, also those of a call that make no delta", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({
    script: [{ calls: [{ tool: "bash", args: { command: "echo slow" } }] }, { text: "done" }],
    faults: [{ kind: "drip", everyMs: 1 }],
  });
  await pointAt(world, server.url);
  const ran = await run(batch(world, "--idle-timeout", "1", "go"), { world, env: KEY });
  expect(await resultOf(world, ran)).toMatchObject({ exit_code: 0, response: "done" });
});

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const) {
  test(`${signal} ends the run as cancelled, with its result within five seconds`, async () => {
    await using world = await openWorld();
    const script = await scripted(world, SLEEP);
    await using running = start(batch(world, "--script", script, "go"), { world });
    await running.sees("item.started");
    const askedAt = Date.now();
    running.child.kill(signal);
    const ran = await running.ended;
    expect(await resultOf(world, ran)).toMatchObject({
      exit_code: code,
      status: "cancelled",
      reason: "turn.interrupted",
      response: "waiting",
    });
    expect((await stat(path.join(world.root, "result.json"))).mtimeMs - askedAt).toBeLessThan(5000);
  });
}

test("a second signal ends the process at once and still leaves a result", async () => {
  await using world = await openWorld();
  const script = await scripted(world, SLEEP);
  await using running = start(batch(world, "--script", script, "go"), { world });
  await running.sees("item.started");
  running.child.kill("SIGTERM");
  const again = setTimeout(() => running.child.kill("SIGTERM"), 300);
  const [code, signal] = await once(running.child, "exit");
  clearTimeout(again);
  // The second may come when it is on its way out and listens no more; a shell sees the same.
  expect(code ?? signal).toBe(signal === null ? 143 : "SIGTERM");
  const result = RunResult.parse(JSON.parse(await readFile(path.join(world.root, "result.json"), "utf8")));
  expect(result).toMatchObject({ status: "cancelled", exit_code: 143, reason: "turn.interrupted" });
});

test("a tool that breaks fails its call, not the run", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [
    { calls: [{ tool: "bash", args: { command: "echo x" } }] },
    { text: "went on" },
  ]);
  const ran = await run(batch(world, "--script", script, "go"), {
    world,
    env: { HEDDLE_FAILPOINT: "process.after-spawn=throw" },
  });
  expect(await resultOf(world, ran)).toMatchObject({ exit_code: 0, response: "went on" });
});

test("R1: a defect of Heddle itself still leaves a result", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "never" }]);
  const ran = await run(batch(world, "--script", script, "go"), {
    world,
    env: { HEDDLE_FAILPOINT: "turn.before-admit=throw" },
  });
  expect(ran.code).not.toBe(0);
  expect(await resultOf(world, ran)).toMatchObject({ status: "failed" });
});

test("with the exit codes of codex the result says what the process exited with", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ calls: [{ tool: "bash", args: { command: "true" } }] }, { text: "more" }]);
  const ran = await run(batch(world, "--codex-exit-codes", "--max-turns", "1", "--script", script, "go"), { world });
  expect(await resultOf(world, ran)).toMatchObject({ exit_code: 1, reason: "limit.reached" });
});

test("a result file that cannot be is refused; one that is there is replaced", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "ok" }]);
  const ran = await run(["exec", "--result-json", "missing/result.json", "--script", script, "go"], { world });
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining("--result-json") });
  await writeFile(path.join(world.root, "result.json"), "old");
  expect(await resultOf(world, await run(batch(world, "--script", script, "go"), { world }))).toMatchObject({
    status: "completed",
  });
});

test("only the named tools are offered, and an unknown name is refused", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [
    { calls: [{ tool: "bash", args: { command: "true" } }] },
    { text: "without it" },
  ]);
  const ran = await run(batch(world, "--script", script, "--allow-tool", "read", "go"), { world });
  expect(await resultOf(world, ran)).toMatchObject({
    exit_code: 0,
    permission_denials: [{ tool: "bash", code: "policy.denied" }],
  });
  const unknown = await run(batch(world, "--script", script, "--allow-tool", "teleport", "go"), { world });
  expect(await resultOf(world, unknown)).toMatchObject({ exit_code: 2, message: expect.stringContaining("teleport") });
});
