import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "@heddle/models/testing";
import type { EventBody, ItemDelta, StoredEvent } from "@heddle/protocol";
import { probeSandbox } from "@heddle/tools";
import { expect, test, vi } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

const types = (events: readonly StoredEvent[]): string[] => events.map(({ body }) => body.type);
const bodies = (events: readonly StoredEvent[]): EventBody[] => events.map(({ body }) => body);

const sh = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });

test("a turn runs its calls in the sandbox and ends with exactly one terminal event", async () => {
  await using t = await openTestHeddle({
    script: [{ text: "writing", calls: [sh("echo hello > made.txt && cat made.txt")] }, { text: "done" }],
  });
  const turn = await t.start("make a file");
  const terminal = await turn.done;
  expect(terminal.body).toMatchObject({ type: "turn.completed", status: "completed" });
  expect(await readFile(join(t.workspace, "made.txt"), "utf8")).toBe("hello\n");

  const events = await t.events(turn.threadId);
  expect(types(events)).toEqual([
    "thread.created",
    "turn.admitted",
    "turn.started",
    "envelope.entered",
    "context.loaded",
    "item.started",
    "item.completed",
    "model.requested",
    "item.started",
    "item.completed",
    "model.responded",
    "sandbox.opened",
    "tool.intended",
    "item.started",
    "tool.settled",
    "item.completed",
    "model.requested",
    "item.started",
    "item.completed",
    "model.responded",
    "turn.completed",
  ]);
  expect(events.map(({ version }) => version)).toEqual(events.map((_, index) => index + 1));
  const command = bodies(events).findLast(
    (body) => body.type === "item.completed" && body.item.type === "commandExecution",
  );
  expect(command).toMatchObject({ item: { status: "completed", exitCode: 0, output: "hello\n" } });
  expect((await t.heddle.journal.verify()).damage).toEqual([]);
});

test("deltas of a message concatenate to its completed text", async () => {
  await using t = await openTestHeddle({ script: [{ text: "one two three four five six seven eight nine ten" }] });
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const deltas: ItemDelta[] = [];
  using _listener = t.heddle.onDelta(threadId, (delta) => deltas.push(delta));
  await (
    await t.start("speak", { thread: threadId })
  ).done;
  const message = bodies(await t.events(threadId)).find(
    (body) => body.type === "item.completed" && body.item.type === "agentMessage",
  );
  expect(deltas.length).toBeGreaterThan(1);
  const before = deltas.map((_, at) => deltas.slice(0, at).reduce((sum, { delta }) => sum + delta.length, 0));
  expect(deltas.map(({ offset }) => offset)).toEqual(before);
  expect(message).toMatchObject({ item: { text: deltas.map(({ delta }) => delta).join("") } });
});

test("a second turn sees what the first one said and did", async () => {
  await using t = await openTestHeddle({
    script: [{ text: "first" }, { calls: [sh("echo second")] }, { text: "third" }],
  });
  const first = await t.start("one");
  await first.done;
  const second = await t.start("two", { thread: first.threadId });
  expect((await second.done).body.status).toBe("completed");
  const said = bodies(await t.events(first.threadId)).flatMap((body) =>
    body.type === "item.completed" && body.item.type === "agentMessage" ? [body.item.text] : [],
  );
  // The scripted model plays the step after the answers it is shown, so the order proves the context.
  expect(said).toEqual(["first", "third"]);
});

test("the same client id starts one turn however often it is sent, and other input under it is a conflict", async () => {
  await using t = await openTestHeddle({ script: [{ text: "once" }] });
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const turns = await Promise.all(
    Array.from({ length: 20 }, () => t.start("hello", { thread: threadId, clientId: "client-1" })),
  );
  expect(new Set(turns.map(({ turnId }) => turnId)).size).toBe(1);
  const ends = await Promise.all(turns.map(({ done }) => done));
  expect(new Set(ends.map(({ id }) => id)).size).toBe(1);
  expect(types(await t.events(threadId)).filter((type) => type === "turn.admitted")).toHaveLength(1);
  await expect(t.start("something else", { thread: threadId, clientId: "client-1" })).rejects.toMatchObject({
    code: "store.id-conflict",
  });
});

test("D4, D7: an unknown tool, broken arguments and a refused path are results for the model and items for the user", async () => {
  await using t = await openTestHeddle({
    script: [
      {
        calls: [
          { tool: "no_such_tool", args: {} },
          { tool: "exec_command", args: "{not json" },
          { tool: "apply_patch", args: "*** Begin Patch\n*** Add File: /etc/heddle-was-here\n+x\n*** End Patch" },
        ],
      },
      { text: "I see" },
    ],
  });
  const turn = await t.start("misbehave");
  expect((await turn.done).body.status).toBe("completed");
  const events = bodies(await t.events(turn.threadId));
  const settled = events.flatMap((body) => (body.type === "tool.settled" ? [[body.outcome, body.failure?.code]] : []));
  expect(settled).toEqual([
    ["denied", "tool.unknown"],
    ["failed", "tool.invalid-arguments"],
    ["denied", "path.outside"],
  ]);
  const started = events.flatMap((body) => (body.type === "item.started" ? [body.item.id] : []));
  const completed = events.flatMap((body) => (body.type === "item.completed" ? [body.item.id] : []));
  expect([...started].sort()).toEqual([...completed].sort());
  expect(events.some((body) => body.type === "tool.intended")).toBe(false);
});

test("an interrupt stops the running command, keeps its output, and ends the turn as interrupted", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [sh("echo begun; setsid sleep 300 & sleep 300")] }, { text: "never said" }],
  });
  const turn = await t.start("wait for ever");
  const began = Promise.withResolvers<void>();
  using _listener = t.heddle.onDelta(turn.threadId, ({ channel }) => channel === "output" && began.resolve());
  await began.promise;
  const before = performance.now();
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "enough" });
  const terminal = await turn.done;
  expect(performance.now() - before).toBeLessThan(6000);
  expect(terminal.body).toMatchObject({
    status: "interrupted",
    failure: { code: "turn.interrupted", message: "enough" },
  });
  const events = bodies(await t.events(turn.threadId));
  const command = events.find((body) => body.type === "item.completed" && body.item.type === "commandExecution");
  expect(command).toMatchObject({ item: { status: "interrupted", output: expect.stringMatching(/^begun\n/) } });
  expect(events.filter((body) => body.type === "turn.completed")).toHaveLength(1);
});

test("an interrupt from another process reaches the turn through the journal", async () => {
  await using t = await openTestHeddle({ script: [{ calls: [sh("echo begun; sleep 300")] }] });
  const turn = await t.start("wait for ever");
  await t.next(turn.threadId, "tool.intended");
  await using other = await openTestHeddle({ folder: t.folder });
  await other.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "from elsewhere" });
  expect((await turn.done).body).toMatchObject({ status: "interrupted", failure: { message: "from elsewhere" } });
});

test("steering is told to the agent at the next safe point and never lost", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [sh("while [ ! -e go ]; do sleep 0.05; done")] }, { text: "after steering" }, { text: "more" }],
  });
  const turn = await t.start("begin");
  await t.next(turn.threadId, "tool.intended");
  await t.heddle.as("user:owner").steer(turn.turnId, [{ type: "text", text: "also do this" }]);
  await writeFile(join(t.workspace, "go"), "");
  expect((await turn.done).body.status).toBe("completed");
  const events = bodies(await t.events(turn.threadId));
  const order = events.flatMap((body) => {
    if (body.type === "tool.settled") return ["result"];
    if (body.type === "model.responded") return ["answer"];
    if (body.type === "item.completed" && body.item.type === "userMessage") return ["user"];
    return [];
  });
  expect(order).toEqual(["user", "answer", "result", "user", "answer"]);
  await expect(
    t.heddle.as("user:owner").steer(turn.turnId, [{ type: "text", text: "too late" }]),
  ).rejects.toMatchObject({
    code: "turn.not-found",
  });
});

test("a thread is busy while a turn runs in it", async () => {
  await using t = await openTestHeddle({ script: [{ calls: [sh("sleep 300")] }] });
  const turn = await t.start("wait");
  await expect(t.start("me too", { thread: turn.threadId })).rejects.toMatchObject({ code: "turn.active" });
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "stop" });
  await turn.done;
});

test("closing Heddle ends its running turns with their terminal event", async () => {
  const t = await openTestHeddle({ script: [{ calls: [sh("sleep 300")] }] });
  const turn = await t.start("wait");
  await t.next(turn.threadId, "tool.intended");
  await t.heddle[Symbol.asyncDispose]();
  expect((await turn.done).body).toMatchObject({ status: "interrupted", failure: { message: "Heddle is closing" } });
  await t[Symbol.asyncDispose]();
});

test("a refused turn leaves no thread behind", async () => {
  await using t = await openTestHeddle();
  const start = { input: [{ type: "text" as const, text: "x" }], settings: { ...t.settings, provider: "nobody" } };
  await expect(
    t.heddle.as("user:owner").startTurn({ ...start, thread: { workspace: t.workspace, origin: "test" } }),
  ).rejects.toMatchObject({ code: "provider.unknown" });
  await expect(
    t.heddle
      .as("user:owner")
      .startTurn({ ...start, settings: t.settings, thread: { workspace: "/nowhere/at/all", origin: "test" } }),
  ).rejects.toMatchObject({ code: "workspace.missing" });
  expect(await t.heddle.journal.threads.list({ limit: 10 })).toEqual([]);
});

test("a protected path made behind the last look is found when the sandbox is left, and recorded before the end", async () => {
  await using t = await openTestHeddle({
    script: [
      // Let go by the call, and still there when the turn ends.
      { calls: [{ tool: "exec_command", args: { cmd: "sleep 0.3; mkdir .vscode; sleep 300", yield_time_ms: 250 } }] },
      { text: "done", delayMs: 1500 },
    ],
  });
  const turn = await t.start("leave something behind");
  expect((await turn.done).body.status).toBe("completed");
  const events = bodies(await t.events(turn.threadId));
  expect(events.find((body) => body.type === "path.violated")).toMatchObject({
    path: join(t.workspace, ".vscode"),
    quarantinedTo: expect.stringContaining(t.home),
  });
  expect(events.at(-1)?.type).toBe("turn.completed");
});

/** The pids of this process's children that hold a sandbox. */
function holders(): number[] {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").trim().split(" ");
  return children.map(Number).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("heddle-holder"));
}

const { namespaces } = await probeSandbox();

test.runIf(namespaces.ok)(
  "F03 a sandbox that is killed under its turn fails the turn in time, and the thread goes on in a new one",
  async () => {
    await using t = await openTestHeddle({
      isUnattended: false,
      // How many calls fail before the end of the sandbox is noticed depends on the machine.
      script: [
        { calls: [sh("echo begun; sleep 300")] },
        ...Array.from({ length: 6 }, () => ({ calls: [sh("echo again")] })),
        { text: "done" },
      ],
    });
    const turn = await t.start("wait");
    const began = Promise.withResolvers<void>();
    using _listener = t.heddle.onDelta(turn.threadId, ({ channel }) => channel === "output" && began.resolve());
    await began.promise;
    const killedAt = performance.now();
    for (const pid of holders()) process.kill(pid, "SIGKILL");
    expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "sandbox.failed" } });
    expect(performance.now() - killedAt).toBeLessThan(5000);

    const next = await t.start("go on", { thread: turn.threadId });
    expect((await next.done).body.status).toBe("completed");
    const outputs = bodies(await t.events(turn.threadId)).flatMap((body) =>
      body.type === "item.completed" && body.item.type === "commandExecution" ? [body.item.output] : [],
    );
    expect(outputs.at(-1)).toBe("again\n");
  },
);

test.runIf(namespaces.ok)("somebody stands by for a command that the model begins to call", async () => {
  const look = sh("tr '\\0' ' ' </proc/1/cmdline");
  await using t = await openTestHeddle({ script: [{ calls: [look] }, { calls: [look] }, { text: "done" }] });
  const turn = await t.start("look twice");
  expect((await turn.done).body.status).toBe("completed");
  const outputs = bodies(await t.events(turn.threadId)).flatMap((body) =>
    body.type === "item.completed" && body.item.type === "commandExecution" ? [body.item.output] : [],
  );
  expect(outputs).toEqual(["sh -s heddle-standby 1 ", "sh -s heddle-standby 2 "]);
});

test.runIf(namespaces.ok)(
  "a model that takes its time finds somebody standing by before it calls anything",
  async () => {
    await using server = await startModelServer({
      async respond({ answers }) {
        if (answers > 0) return { text: "done" };
        await vi.waitFor(() => expect(commandsBelow(process.pid)).toContain("sh -s heddle-standby 1 "), 10_000);
        return { calls: [sh("tr '\\0' ' ' </proc/1/cmdline")] };
      },
    });
    const settings = { provider: "test", model: "gpt-5.5" };
    await using t = await openTestHeddle({ providers: [server.provider("openai-responses")], settings });
    const turn = await t.start("look once");
    expect((await turn.done).body.status).toBe("completed");
    expect(bodies(await t.events(turn.threadId))).toContainEqual(
      expect.objectContaining({ item: expect.objectContaining({ output: "sh -s heddle-standby 1 " }) }),
    );
  },
);

/** The command lines of all that a process has started, and of what those have. */
function commandsBelow(pid: number): string[] {
  const read = (file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8");
    } catch {
      return "";
    }
  };
  const threads = existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`) : [];
  const children = threads.flatMap((thread) => read(`task/${thread}/children`).split(" ").filter(Boolean).map(Number));
  return [read("cmdline").replaceAll("\0", " "), ...children.flatMap(commandsBelow)];
}
