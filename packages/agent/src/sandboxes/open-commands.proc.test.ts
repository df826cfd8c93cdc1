import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { startModelServer } from "@heddle/models/testing";
import type { EventBody, EventOf, EventType, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { createContext } from "../context/context.ts";
import { openTestHeddle } from "../../test/test-heddle.ts";

/** The number of the first open command of a thread. */
const SESSION = 1000;
const POLL = { tool: "write_stdin", args: { session_id: SESSION, chars: "", yield_time_ms: 20_000 } };

const start = (cmd: string): { tool: string; args: Readonly<Record<string, unknown>> } => ({
  tool: "exec_command",
  args: { cmd, yield_time_ms: 250 },
});
const bodies = (events: readonly StoredEvent[]): EventBody[] => events.map(({ body }) => body);

function ofType<T extends EventType>(events: readonly EventBody[], type: T): EventOf<T>[] {
  return events.filter((body): body is EventOf<T> => body.type === type);
}

/** What happened to commands, and to the calls that looked after them, in order. */
function story(events: readonly EventBody[]): string[] {
  return events.flatMap((body) => {
    if (body.type === "item.started" && body.item.type === "commandExecution") return ["command started"];
    if (body.type === "item.completed" && body.item.type === "commandExecution") {
      return [`command ${body.item.status}`];
    }
    if (body.type === "tool.settled") return [`${body.tool} answered`];
    if (body.type === "model.responded") return ["model"];
    return body.type === "turn.completed" ? [`turn ${body.status}`] : [];
  });
}

function commandEnds(events: readonly EventBody[]): EventOf<"item.completed">["item"][] {
  return ofType(events, "item.completed").flatMap(({ item }) => (item.type === "commandExecution" ? [item] : []));
}

test("the item of a command that outlives its call stays open until the command ends", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [start("echo first; until [ -e go ]; do sleep 0.05; done; echo second; exit 3")] },
      { calls: [start("touch go")] },
      { calls: [POLL] },
      { text: "done" },
    ],
  });
  const turn = await t.start("wait for it");
  expect((await turn.done).body.status).toBe("completed");
  const events = bodies(await t.events(turn.threadId));
  const [first, second] = commandEnds(events);
  const [touched, waited] =
    first?.type === "commandExecution" && first.command === "touch go" ? [first, second] : [second, first];
  expect(commandEnds(events)).toHaveLength(2);
  expect(touched).toMatchObject({ command: "touch go", exitCode: 0 });
  expect(waited).toMatchObject({ status: "failed", output: "first\nsecond\n", exitCode: 3 });
  expect(waited).not.toHaveProperty("processId");
  // The model had its answer when the time was up, and is told the rest by the call that looked again.
  const [yielded, , polled] = ofType(events, "tool.settled");
  expect(yielded).toMatchObject({ outcome: "ok", processId: String(SESSION) });
  expect(JSON.stringify(yielded?.output)).toMatch(/Process running with session ID 1000.*first/);
  expect(JSON.stringify(polled?.output)).toMatch(/Process exited with code 3.*second/);
  expect(polled).not.toHaveProperty("processId");
  // Its end is on record before the model is asked again.
  const order = story(events);
  expect(order.lastIndexOf("command failed")).toBeLessThan(order.lastIndexOf("model"));
});

test("output goes to the command's item while it is open, whoever reads it", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [start("echo first; sleep 0.6; echo second")] }, { calls: [POLL] }, { text: "done" }],
  });
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const live = new Map<string, string>();
  using _listener = t.heddle.onDelta(threadId, ({ itemId, channel, delta }) => {
    if (channel === "output") live.set(itemId, (live.get(itemId) ?? "") + delta);
  });
  await (
    await t.start("wait", { thread: threadId })
  ).done;
  const [command] = commandEnds(bodies(await t.events(threadId)));
  expect([...live]).toEqual([[command?.id, "first\nsecond\n"]]);
});

test("a command still running when an unattended turn ends is ended, and its item with it", async () => {
  await using t = await openTestHeddle({ script: [{ calls: [start("echo up; sleep 300")] }, { text: "done" }] });
  const turn = await t.start("leave it");
  expect((await turn.done).body.status).toBe("completed");
  const events = bodies(await t.events(turn.threadId));
  expect(commandEnds(events)).toMatchObject([
    { status: "interrupted", output: "up\n", error: "Process stopped with the turn" },
  ]);
  expect(story(events)).toEqual([
    "model",
    "command started",
    "exec_command answered",
    "model",
    "command interrupted",
    "turn completed",
  ]);
});

test("a command that goes on after an attended turn leaves its item with the turn, and its end to the next", async () => {
  await using t = await openTestHeddle({
    isUnattended: false,
    script: [
      { calls: [start("echo up; until [ -e go ]; do sleep 0.05; done; echo over; exit 4")] },
      { text: "it runs" },
      { calls: [start("touch go"), POLL] },
      { text: "done" },
    ],
  });
  const first = await t.start("start it");
  await first.done;
  expect(commandEnds(bodies(await t.events(first.threadId)))).toMatchObject([
    { status: "completed", processId: String(SESSION), output: "up\n" },
  ]);
  const context = createContext(bodies(await t.events(first.threadId)));
  expect([...context.openCommands.keys()]).toEqual([String(SESSION)]);
  const second = await t.start("look again", { thread: first.threadId });
  expect((await second.done).body.status).toBe("completed");
  const events = bodies(await t.events(first.threadId));
  expect(commandEnds(events)).toHaveLength(2);
  const calls = ofType(events, "item.completed").flatMap(({ item }) => (item.type === "toolCall" ? [item] : []));
  expect(calls).toMatchObject([{ tool: "write_stdin", status: "failed", output: "over\n" }]);
});

test("a turn that is stopped ends its open commands, each item once", async () => {
  await using t = await openTestHeddle({
    isUnattended: false,
    script: [{ calls: [start("echo up; sleep 300")] }, { calls: [POLL] }, { text: "never" }],
  });
  const turn = await t.start("wait for ever");
  await t.next(turn.threadId, "tool.settled");
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "stop" });
  expect((await turn.done).body.status).toBe("interrupted");
  const events = bodies(await t.events(turn.threadId));
  expect(commandEnds(events)).toMatchObject([{ status: "interrupted", output: "up\n" }]);
  const started = ofType(events, "item.started").map(({ item }) => item.id);
  const completed = ofType(events, "item.completed").map(({ item }) => item.id);
  expect(completed.toSorted()).toEqual(started.toSorted());
});

test("an answer of the model that breaks off does not end the item of an open command", async () => {
  await using server = await startModelServer({
    script: [
      { calls: [start("echo first; sleep 1; echo second")] },
      { text: "a long answer that breaks off in the middle", calls: [POLL] },
      { text: "done" },
    ],
    faults: [undefined, { kind: "cut", at: "mid-delta" }],
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const turn = await t.start("wait for it");
  expect((await turn.done).body.status).toBe("completed");
  const events = bodies(await t.events(turn.threadId));
  expect(ofType(events, "model.retried")).toHaveLength(1);
  expect(commandEnds(events)).toMatchObject([{ status: "completed", exitCode: 0, output: "first\nsecond\n" }]);
});

test("what the model is told of open commands is the same in a running turn and after it", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [start("sleep 0.6")] }, { calls: [POLL] }, { text: "done" }],
  });
  const turn = await t.start("wait");
  await turn.done;
  const events = bodies(await t.events(turn.threadId));
  const settledAt = events.findIndex((body) => body.type === "tool.settled");
  expect([...createContext(events.slice(0, settledAt + 1)).openCommands]).toEqual([[String(SESSION), "sleep 0.6"]]);
  expect([...createContext(events).openCommands]).toEqual([]);
});

test("after a crash the item of an open command is unknown, its answered call is not, and nothing is run again", async () => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-open-"));
  let child: ChildProcessByStdio<null, Readable, null> | undefined;
  try {
    const script = [{ calls: [start("echo run >>runs; echo up; sleep 300")] }, { calls: [start("echo mark")] }];
    child = spawn(
      process.execPath,
      [
        "--conditions=heddle-source",
        join(import.meta.dirname, "../../test/killed-in-child.ts"),
        folder,
        JSON.stringify(script),
      ],
      { stdio: ["ignore", "pipe", "inherit"], timeout: 90_000, killSignal: "SIGKILL" },
    );
    const [said] = await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "close");
    await using t = await openTestHeddle({ folder, script: [{ text: "never asked" }] });
    const events = bodies(await t.events(String(said).trim()));
    expect(commandEnds(events)).toContainEqual(
      expect.objectContaining({ status: "unknown", command: "echo run >>runs; echo up; sleep 300" }),
    );
    expect(ofType(events, "tool.settled")[0]).toMatchObject({ outcome: "ok", processId: String(SESSION) });
    expect(commandEnds(events)).toHaveLength(2);
    expect(await readFile(join(t.workspace, "runs"), "utf8")).toBe("run\n");
  } finally {
    child?.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
});
