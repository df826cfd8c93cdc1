import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import type { EventBody, EventOf, HookConfig, HookEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const sh = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });

function open(server: ModelServer, hooks: readonly HookConfig[], isUnattended = true): Promise<TestHeddle> {
  return openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-x" },
    hooks,
    isUnattended,
  });
}

async function run(t: TestHeddle, text = "go"): Promise<{ end: EventOf<"turn.completed">; events: EventBody[] }> {
  const turn = await t.start(text);
  const end = (await turn.done).body;
  return { end, events: (await t.events(turn.threadId)).map(({ body }) => body) };
}

function ofType<T extends EventBody["type"]>(events: readonly EventBody[], type: T): EventOf<T>[] {
  return events.filter((body): body is EventOf<T> => body.type === type);
}

const outcomes = (events: readonly EventBody[]): string[][] =>
  ofType(events, "hook.ran").map(({ event, outcome }) => [event, outcome]);

test("every event runs its hook inside the sandbox, with its payload on the input, and is stored", async () => {
  await using server = await startModelServer({ script: [{ calls: [sh("echo hi > made")] }, { text: "done" }] });
  const events: HookEvent[] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];
  await using t = await open(
    server,
    events.map((event) => ({ event, command: "cat >> log" })),
  );
  const { end, events: stored } = await run(t, "make a file");
  expect(end.status).toBe("completed");
  expect(outcomes(stored)).toEqual(events.map((event) => [event, "ok"]));
  const payloads = (await readFile(join(t.workspace, "log"), "utf8"))
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  const common = {
    session_id: expect.any(String),
    turn_id: end.turnId,
    transcript_path: null,
    cwd: t.workspace,
    model: "gpt-x",
    permission_mode: "default",
  };
  const call = {
    tool_name: "Bash",
    tool_input: { cmd: "echo hi > made", command: "echo hi > made" },
    tool_use_id: expect.any(String),
  };
  expect(payloads).toEqual([
    { ...common, hook_event_name: "SessionStart", source: "startup" },
    { ...common, hook_event_name: "UserPromptSubmit", prompt: "make a file" },
    { ...common, hook_event_name: "PreToolUse", ...call },
    {
      ...common,
      hook_event_name: "PostToolUse",
      ...call,
      tool_response: { output: expect.any(String), is_error: false },
    },
    { ...common, hook_event_name: "Stop", stop_hook_active: false, last_assistant_message: "done" },
    { ...common, hook_event_name: "SessionEnd", reason: "other" },
  ]);
  // The terminal event is the last, whatever hooks ran at the end.
  expect(stored.at(-1)?.type).toBe("turn.completed");
});

test("S6: a hook cannot reach what the thread's commands cannot reach", async () => {
  await using server = await startModelServer({ script: [{ text: "done" }] });
  await using folder = await openTestHeddle();
  await writeFile(join(folder.home, "secret"), "TOP SECRET");
  await using t = await openTestHeddle({
    folder: folder.folder,
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-x" },
    env: { OPENAI_API_KEY: "sk-hidden" },
    hooks: [
      { event: "UserPromptSubmit", command: ["touch", "/etc/heddle-hook-was-here"] },
      { event: "UserPromptSubmit", command: ["cat", join(folder.home, "secret")] },
      { event: "UserPromptSubmit", command: "env" },
    ],
  });
  const { events } = await run(t);
  await expect(access("/etc/heddle-hook-was-here")).rejects.toMatchObject({ code: "ENOENT" });
  expect(ofType(events, "hook.ran").map(({ outcome }) => outcome)).toEqual(["failed", "failed", "ok"]);
  const sent = JSON.stringify(server.requests[0]?.body);
  expect(sent).toContain("PATH=");
  expect(sent).not.toMatch(/TOP SECRET|sk-hidden/);
});

test("PreToolUse refuses a call before its intent; the model is told why and continues", async () => {
  await using server = await startModelServer({
    script: [{ calls: [sh("touch forbidden"), sh("touch allowed")] }, { text: "I see" }],
  });
  const guard = `grep -q forbidden && { echo "not that file" >&2; exit 2; }; exit 0`;
  await using t = await open(server, [{ event: "PreToolUse", matcher: "Bash", command: guard }]);
  const { end, events } = await run(t);
  expect(end.status).toBe("completed");
  expect(ofType(events, "tool.intended")).toHaveLength(1);
  expect(ofType(events, "tool.settled")).toMatchObject([
    { outcome: "denied", failure: { code: "policy.denied", message: expect.stringContaining("not that file") } },
    { outcome: "ok" },
  ]);
  expect(ofType(events, "hook.ran")).toMatchObject([
    { outcome: "blocked", reason: "not that file" },
    { outcome: "ok" },
  ]);
  const declined = ofType(events, "item.completed").find(({ item }) => item.type === "commandExecution");
  expect(declined).toMatchObject({ item: { status: "declined" } });
  expect(JSON.stringify(server.requests[1]?.body)).toContain("not that file");
  await expect(access(join(t.workspace, "forbidden"))).rejects.toMatchObject({ code: "ENOENT" });
  await access(join(t.workspace, "allowed"));
});

test.each([
  ["cannot start", ["/no/such/program"], undefined],
  ["breaks", "exit 1", undefined],
  ["takes too long", "sleep 300", 300],
  ["says nothing sensible", "echo '{\"decision\":'", undefined],
  ["never reads and floods", "head -c 5000000 /dev/zero | tr '\\0' x; exit 3", undefined],
])(
  "a PreToolUse hook that %s counts as a no, or as nothing when it fails open, and is reported",
  async (_name, command, timeoutMs) => {
    for (const onFailure of [undefined, "open"] as const) {
      await using server = await startModelServer({ script: [{ calls: [sh("touch made")] }, { text: "ok" }] });
      await using t = await open(server, [
        {
          event: "PreToolUse",
          command,
          ...(timeoutMs === undefined ? {} : { timeoutMs }),
          ...(onFailure === undefined ? {} : { onFailure }),
        },
      ]);
      const { end, events } = await run(t);
      expect(end.status).toBe("completed");
      const isOpen = onFailure === "open";
      expect(ofType(events, "hook.ran")).toMatchObject([
        { outcome: isOpen ? "failed" : "blocked", failure: { code: "tool.failed", message: expect.any(String) } },
      ]);
      expect(ofType(events, "hook.ran")[0]?.output.length).toBeLessThan(20_000);
      expect(ofType(events, "tool.settled")).toMatchObject([{ outcome: isOpen ? "ok" : "denied" }]);
    }
  },
);

test("UserPromptSubmit adds context, or refuses the prompt for good", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "ok" }) });
  const command = `if grep -q password; then echo "no passwords"; exit 2; else echo "branch: main"; fi`;
  await using t = await open(server, [{ event: "UserPromptSubmit", command }]);
  const first = await t.start("hello");
  expect((await first.done).body.status).toBe("completed");
  expect(JSON.stringify(server.requests[0]?.body)).toContain("branch: main");
  const second = await t.start("my password is hunter2", { thread: first.threadId });
  expect((await second.done).body).toMatchObject({
    status: "failed",
    failure: { code: "policy.denied", message: expect.stringContaining("no passwords") },
  });
  expect(server.requests).toHaveLength(1);
  await (
    await t.start("never mind", { thread: first.threadId })
  ).done;
  const sent = JSON.stringify(server.requests[1]?.body);
  expect(sent).not.toContain("hunter2");
  expect(sent).toContain("never mind");
});

test("PostToolUse tells the model something behind the result", async () => {
  await using server = await startModelServer({ script: [{ calls: [sh("echo x")] }, { text: "ok" }] });
  const note = JSON.stringify({
    hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "mind the lint" },
  });
  await using t = await open(server, [
    { event: "PostToolUse", matcher: "Write", command: "echo never; exit 2" },
    { event: "PostToolUse", matcher: "exec_.*", command: `echo '${note}'` },
  ]);
  const { events } = await run(t);
  expect(ofType(events, "context.added")).toMatchObject([{ source: "hook", name: "PostToolUse" }]);
  expect(JSON.stringify(server.requests[1]?.body)).toMatch(/"function_call_output".*mind the lint/);
  expect(JSON.stringify(server.requests[1]?.body)).not.toContain("never");
});

test("Stop sends the model back to work, at most three times a turn", async () => {
  await using server = await startModelServer({ respond: ({ answers }) => ({ text: `answer ${answers}` }) });
  await using t = await open(server, [
    { event: "Stop", command: `echo '{"decision":"block","reason":"run the tests"}'` },
  ]);
  const { end, events } = await run(t);
  expect(end.status).toBe("completed");
  expect(server.requests).toHaveLength(4);
  expect(JSON.stringify(server.requests[1]?.body)).toContain("run the tests");
  expect(outcomes(events)).toEqual(Array(4).fill(["Stop", "blocked"]));
  const notices = ofType(events, "item.completed").filter(({ item }) => item.type === "notice");
  expect(notices).toMatchObject([{ item: { code: "limit.reached" } }]);
});

test.each([
  ["sh hooks/gone.sh", "hooks/gone.sh"],
  [["/bin/sh", "/no/such/stop.sh"], "/no/such/stop.sh"],
])(
  "14: a Stop hook whose script is missing has failed, and with on_failure open says nothing: %s",
  async (command, path) => {
    await using server = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
    await using t = await open(server, [{ event: "Stop", command, onFailure: "open" }]);
    const { end, events } = await run(t);
    expect([end.status, server.requests.length]).toEqual(["completed", 1]);
    expect(ofType(events, "hook.ran")).toMatchObject([
      { outcome: "failed", failure: { message: expect.stringContaining(`${path} does not exist`) } },
    ]);
  },
);

test("14: a hook that says no about a file that is there is obeyed", async () => {
  await using server = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
  await using t = await open(server, [
    { event: "Stop", command: "echo ./check.sh is not run; test -e again && exit 0; touch again ./check.sh; exit 2" },
  ]);
  await run(t);
  expect(server.requests).toHaveLength(2);
});

test("PreCompact can refuse a compaction, which says so and keeps the context", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "a".repeat(30_000) }) });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-x", contextTokens: 20_000, compactAtTokens: 1_000_000 },
    hooks: [
      { event: "PreCompact", matcher: "manual", command: "echo keep it; exit 2" },
      { event: "PostCompact", command: "true" },
    ],
  });
  const turn = await t.start("go");
  await turn.done;
  const end = (await (await t.heddle.as("user:owner").compact(turn.threadId)).done).body;
  expect(end).toMatchObject({ status: "failed", failure: { code: "policy.denied" } });
  const events = (await t.events(turn.threadId)).map(({ body }) => body);
  expect(outcomes(events)).toEqual([["PreCompact", "blocked"]]);
  const item = ofType(events, "item.completed").findLast(({ item: { type } }) => type === "contextCompaction");
  expect(item).toMatchObject({ item: { status: "declined", error: expect.stringContaining("keep it") } });
  expect(server.requests).toHaveLength(1);
});

test("an interrupt ends a hook with the turn, and SessionEnd still runs", async () => {
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  await using t = await open(server, [
    { event: "UserPromptSubmit", command: "touch waiting; sleep 300" },
    { event: "SessionEnd", command: "touch ended" },
  ]);
  const turn = await t.start("go");
  await expect
    .poll(
      () =>
        access(join(t.workspace, "waiting")).then(
          () => true,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true);
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "enough" });
  expect((await turn.done).body).toMatchObject({ status: "interrupted", failure: { message: "enough" } });
  await access(join(t.workspace, "ended"));
  const events = (await t.events(turn.threadId)).map(({ body }) => body);
  expect(outcomes(events)).toEqual([
    ["UserPromptSubmit", "failed"],
    ["SessionEnd", "ok"],
  ]);
  expect(server.requests).toHaveLength(0);
});

test("where somebody is there, a session starts once a thread and process; a resumed one says so", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "ok" }) });
  const hooks: HookConfig[] = [{ event: "SessionStart", matcher: "startup|resume", command: "cat >> sources" }];
  await using t = await open(server, hooks, false);
  const first = await t.start("one");
  await first.done;
  await (
    await t.start("two", { thread: first.threadId })
  ).done;
  await using other = await openTestHeddle({
    folder: t.folder,
    providers: [server.provider("openai-responses")],
    settings: t.settings,
    hooks,
  });
  await (
    await other.start("three", { thread: first.threadId })
  ).done;
  const lines = (await readFile(join(t.workspace, "sources"), "utf8")).trim().split("\n");
  expect(lines.map((line) => /"source":"(\w+)"/.exec(line)?.[1])).toEqual(["startup", "resume"]);
});

test("a matcher that is not a regular expression is refused when Heddle opens", async () => {
  await expect(
    openTestHeddle({ hooks: [{ event: "PreToolUse", matcher: "(", command: "true" }] }),
  ).rejects.toMatchObject({ code: "config.invalid" });
});
