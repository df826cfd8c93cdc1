import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyExport } from "@heddle/journal";
import { startModelServer, type HttpWire } from "@heddle/models/testing";
import type { EventBody, StoredEvent } from "@heddle/protocol";
import { expect, test, inject } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";
import { exportThread } from "./threads.ts";

const sh = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });
const waiting = [{ text: "one" }, { calls: [sh("echo begun; sleep 300")] }, { text: "three" }];

function messages(events: readonly StoredEvent[]): string[] {
  return events.flatMap(({ body }) =>
    body.type === "item.completed" && body.item.type === "agentMessage" ? [body.item.text] : [],
  );
}

async function stop(t: TestHeddle, turn: { readonly turnId: string; readonly done: Promise<unknown> }): Promise<void> {
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "stop" });
  await turn.done;
}

test("a fork tells the model its parent's past, and neither sees what the other does next", async () => {
  // The scripted model plays the step after the answers it is shown, so the step proves the context.
  await using t = await openTestHeddle({
    script: [{ text: "first" }, { calls: [sh("echo second")] }, { text: "third" }, { text: "fourth" }],
  });
  const parent = await t.start("one");
  await parent.done;
  const fork = await t.heddle.as("user:owner").forkThread({ threadId: parent.threadId, origin: "test" });
  await (
    await t.start("two", { thread: fork })
  ).done;
  await (
    await t.start("other two", { thread: parent.threadId })
  ).done;
  await (
    await t.start("three", { thread: fork })
  ).done;
  expect(messages(await t.events(parent.threadId))).toEqual(["first", "third"]);
  expect(messages(await t.events(fork))).toEqual(["third", "fourth"]);
  // The surroundings are news once: the fork has been told by its parent.
  const told = (await t.events(fork)).filter(({ body }) => body.type === "context.loaded");
  expect(told).toEqual([]);
  expect((await t.heddle.journal.verify()).damage).toEqual([]);
  expect(await verifyExport(exportThread(t.heddle.journal, fork))).toMatchObject({ streams: 2, damage: [] });
});

test("a turn that starts with a fork makes it in the same step; refused, it leaves none behind", async () => {
  await using t = await openTestHeddle({ script: [{ text: "first" }, { text: "second" }] });
  const parent = await t.start("one", { clientId: "same" });
  await parent.done;
  const fork = { fork: { threadId: parent.threadId, origin: "test" } };
  const start = { input: [{ type: "text" as const, text: "two" }], settings: t.settings, thread: fork };
  const refused = t.heddle.as("user:owner").startTurn({ ...start, settings: { ...t.settings, provider: "nobody" } });
  await expect(refused).rejects.toMatchObject({ code: "provider.unknown" });
  expect(await t.heddle.journal.threads.list({ limit: 9 })).toHaveLength(1);
  // A client id belongs to a thread: in the fork it is a new turn.
  const turn = await t.heddle.as("user:owner").startTurn({ ...start, clientId: "same" });
  expect(turn.admittedVersion).toBe(2);
  expect((await turn.done).body.status).toBe("completed");
  expect(turn.turnId).not.toBe(parent.turnId);
  expect(messages(await t.events(turn.threadId))).toEqual(["second"]);
  const again = await t.start("two", { thread: turn.threadId, clientId: "same" });
  expect(again.turnId).toBe(turn.turnId);
  const gone = { fork: { threadId: "no-such-thread", origin: "test" } };
  await expect(t.heddle.as("user:owner").startTurn({ ...start, thread: gone })).rejects.toMatchObject({
    code: "thread.not-found",
  });
});

test("a thread is forked at its last ended turn while another runs, and cannot be deleted meanwhile", async () => {
  await using t = await openTestHeddle({ script: waiting });
  const first = await t.start("one");
  await first.done;
  const running = await t.start("two", { thread: first.threadId });
  await t.next(running.threadId, "tool.intended");
  const fork = await t.heddle.as("user:owner").forkThread({ threadId: first.threadId, origin: "test" });
  const end = (await t.events(first.threadId)).find(({ body }) => body.type === "turn.completed");
  expect((await t.heddle.findThread(fork)).forkedFrom).toEqual({ threadId: first.threadId, version: end?.version });
  await expect(t.heddle.as("user:owner").deleteThread({ threadId: first.threadId })).rejects.toMatchObject({
    code: "turn.active",
  });
  await stop(t, running);
  await expect(t.heddle.as("user:owner").deleteThread({ threadId: first.threadId })).rejects.toMatchObject({
    code: "thread.has-forks",
  });
  expect(messages(await t.events(first.threadId))).toEqual(["one"]);
});

test("steering in a fork is told after all of its past", async () => {
  await using t = await openTestHeddle({
    script: [
      { text: "first" },
      { calls: [sh("while [ ! -e go ]; do sleep 0.05; done")] },
      { text: "third" },
      { text: "4" },
    ],
  });
  const parent = await t.start("one");
  await parent.done;
  const fork = await t.heddle.as("user:owner").forkThread({ threadId: parent.threadId, origin: "test" });
  const turn = await t.start("two", { thread: fork });
  await t.next(fork, "tool.intended");
  await t.heddle.as("user:owner").steer(turn.turnId, [{ type: "text", text: "and this" }]);
  writeFileSync(join(t.workspace, "go"), "");
  expect((await turn.done).body.status).toBe("completed");
  expect(messages(await t.events(fork))).toEqual(["third"]);
});

test("a deleted thread leaves no words, no spilled output, no quarantine and no open process, and is gone for every call", async () => {
  const canary = "a sentence nobody else would write";
  await using t = await openTestHeddle({
    isUnattended: false,
    script: [{ text: canary, calls: [sh(`seq 1 200000; echo ${canary}`)] }, { text: "done" }],
  });
  const turn = await t.start(canary);
  await turn.done;
  const { threadId } = turn;
  const outputs = join(t.home, "blobs");
  const quarantine = join(t.home, "quarantine", threadId);
  expect(await readdir(outputs)).toHaveLength(1);
  await mkdir(quarantine, { recursive: true });
  await t.heddle.as("user:owner").nameThread({ threadId, name: "short lived" });
  await t.heddle.as("user:owner").deleteThread({ threadId, reason: "tidy" });
  expect([await readdir(outputs), existsSync(quarantine)]).toEqual([[], false]);
  for (const file of ["heddle.db", "heddle.db-wal"]) {
    expect((await readFile(join(t.home, file))).includes(canary)).toBe(false);
  }
  const gone = { code: "thread.not-found" };
  await expect(t.start("again", { thread: threadId })).rejects.toMatchObject(gone);
  await expect(t.heddle.findThread("short lived")).rejects.toMatchObject(gone);
  await expect(t.heddle.as("user:owner").forkThread({ threadId, origin: "test" })).rejects.toMatchObject(gone);
  await expect(t.heddle.as("user:owner").nameThread({ threadId, name: "x" })).rejects.toMatchObject(gone);
  await expect(t.heddle.as("user:owner").deleteThread({ threadId: "nobody" })).rejects.toMatchObject(gone);
  expect(await t.heddle.journal.threads.list({ limit: 9 })).toEqual([]);
  expect((await t.heddle.journal.verify()).damage).toEqual([]);
  // What a crash left of the files goes with the next try.
  await mkdir(quarantine, { recursive: true });
  await t.heddle.as("user:owner").deleteThread({ threadId });
  expect(existsSync(quarantine)).toBe(false);
  // The next start finds nothing to recover and nothing wrong.
  await using next = await openTestHeddle({ folder: t.folder });
  expect([next.heddle.recoveredTurns, next.heddle.journal.damage]).toEqual([0, undefined]);
});

test("damage in the past of a fork is named before the fork continues", async () => {
  await using t = await openTestHeddle({ script: [{ text: "first" }, { text: "second" }] });
  const parent = await t.start("one");
  await parent.done;
  const fork = await t.heddle.as("user:owner").forkThread({ threadId: parent.threadId, origin: "test" });
  const { DatabaseSync } = await import("node:sqlite");
  {
    using db = new DatabaseSync(join(t.home, "heddle.db"));
    db.exec("DROP TRIGGER events_fixed");
    db.prepare("UPDATE events SET at = at + 1 WHERE stream = ? AND version = 3").run(parent.threadId);
  }
  await expect(t.start("two", { thread: fork })).rejects.toMatchObject({ code: "store.damaged" });
  const start = { input: [{ type: "text" as const, text: "x" }], settings: t.settings };
  const again = t.heddle
    .as("user:owner")
    .startTurn({ ...start, thread: { fork: { threadId: parent.threadId, origin: "test" } } });
  await expect(again).rejects.toMatchObject({ code: "store.damaged" });
});

const models: Record<HttpWire, string> = {
  "openai-responses": "gpt-5.5",
  "openai-chat": "some-local-model",
  anthropic: "claude-sonnet-5-5",
  gemini: "gemini-3.8-flash",
};
const SEALED = /sealed-|signed-|rs_/;

test.each([
  ["anthropic", "openai-responses"],
  ["openai-responses", "anthropic"],
  ["openai-responses", "gemini"],
  ["gemini", "openai-chat"],
] as const)(
  "a thread that changes from %s to %s keeps its words and drops what only the first could read",
  async (before, after) => {
    const script = [{ reasoning: "let me think", text: "a memorable answer" }, { text: "and another" }];
    await using first = await startModelServer({ script });
    await using second = await startModelServer({ script });
    await using t = await openTestHeddle({
      providers: [
        { ...first.provider(before), id: "first" },
        { ...second.provider(after), id: "second" },
      ],
      settings: { provider: "first", model: models[before] },
    });
    const turn = await t.start("a memorable question");
    await turn.done;
    const stored = JSON.stringify((await t.events(turn.threadId)).map(({ body }: { body: EventBody }) => body));
    expect(stored).toMatch(/"opaque"/);
    expect(await t.heddle.lastSettings(turn.threadId)).toMatchObject({ provider: "first", model: models[before] });

    const fork = await t.heddle.as("user:owner").forkThread({ threadId: turn.threadId, origin: "test" });
    for (const thread of [turn.threadId, fork]) {
      const settings = { ...t.settings, provider: "second", model: models[after] };
      const next = await t.heddle
        .as("user:owner")
        .startTurn({ thread, input: [{ type: "text", text: "go on" }], settings });
      expect((await next.done).body).toMatchObject({ status: "completed" });
      const sent = JSON.stringify(second.requests.at(-1)?.body);
      expect(sent).toContain("a memorable question");
      expect(sent).toContain("a memorable answer");
      expect(sent).not.toMatch(SEALED);
      expect(await t.heddle.lastSettings(thread)).toMatchObject({ provider: "second" });
    }
  },
);

test("after kill -9 the thread goes on in another process: the turn is closed, no call is repeated, the next turn finishes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-killed-"));
  const script = [
    { calls: [sh("echo one >> effects.log")] },
    { calls: [sh("echo two >> effects.log; echo mark; sleep 300")] },
    { calls: [sh("echo three >> effects.log")] },
    { text: "finished" },
  ];
  const program = join(inject("children"), "killed-in-child.mjs");
  const child = spawn(process.execPath, [program, folder, JSON.stringify(script)], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 90_000,
    killSignal: "SIGKILL",
  });
  try {
    const { value: said, done } = await child.stdout[Symbol.asyncIterator]().next();
    expect(done).toBe(false);
    const threadId = String(said).trim();
    child.kill("SIGKILL");
    await once(child, "close");

    await using t = await openTestHeddle({ folder, script });
    expect(t.heddle.recoveredTurns).toBe(1);
    const found = await t.heddle.findThread({ last: true, workspace: t.workspace });
    expect(found).toMatchObject({ id: threadId, lastTurnStatus: "interrupted", preview: "work until you are killed" });
    const settings = await t.heddle.lastSettings(found.id);
    expect(settings).toEqual(t.settings);
    const turn = await t.heddle.as("user:owner").startTurn({
      thread: found.id,
      input: [{ type: "text", text: "go on" }],
      settings: settings ?? t.settings,
    });
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    expect(await readFile(join(t.workspace, "effects.log"), "utf8")).toBe("one\ntwo\nthree\n");
    const events = await t.events(threadId);
    const outcomes = events.flatMap(({ body }) => (body.type === "tool.settled" ? [body.outcome] : []));
    expect(outcomes).toEqual(["ok", "unknown", "ok"]);
    expect(events.filter(({ body }) => body.type === "turn.completed")).toHaveLength(2);
    expect(messages(events)).toEqual(["finished"]);
    expect((await t.heddle.journal.verify()).damage).toEqual([]);
  } finally {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
});
