import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { examine } from "@heddle/journal/verification";
import { startModelServer } from "@heddle/models/testing";
import type { EventBody, EventType, StoredEvent, TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const say = (text: string) => ({ text });
const patch = (file: string) => ({
  calls: [
    {
      tool: "apply_patch",
      args: `*** Begin Patch\n*** Add File: ${file}\n+new\n*** End Patch\n`,
    },
  ],
});

async function run(t: TestHeddle, change: Partial<TurnSettings> = {}, thread?: string): Promise<string> {
  const turn = await t.heddle.as("user:owner").startTurn({
    thread: thread ?? { workspace: t.workspace, origin: "test" },
    input: [{ type: "text", text: "go" }],
    settings: { ...t.settings, ...change },
  });
  await turn.done;
  return turn.threadId;
}

async function put(folder: string, name: string, text: string): Promise<void> {
  const file = join(folder, name);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const KINDS: ReadonlySet<EventType> = new Set(["turn.started", "envelope.entered", "envelope.left"]);
const told = (events: readonly StoredEvent[]): readonly EventBody[] =>
  events.flatMap(({ body }) => (KINDS.has(body.type) ? [body] : []));

test("the envelope of a thread is entered with its first turn, kept, and left for another when the settings say so", async () => {
  await using t = await openTestHeddle({ script: [say("one"), say("two"), say("three")] });
  const threadId = await run(t);
  await run(t, {}, threadId);
  await run(t, { sandboxMode: "read-only", ceiling: "edit" }, threadId);
  const events = await t.events(threadId);
  const first = { type: "envelope.entered", cause: "start", depth: 0, envelope: { id: "edit" } };
  expect(told(events)).toMatchObject([
    { type: "turn.started", envelope: { id: "edit" } },
    first,
    { type: "turn.started", envelope: { id: "edit" } },
    { type: "turn.started", envelope: { id: "explore" } },
    { type: "envelope.left", cause: "settings", calls: 0 },
    { type: "envelope.entered", cause: "settings", depth: 0, envelope: { id: "explore" }, ceiling: { id: "edit" } },
  ]);
  // In the append of the turn's beginning: nothing comes between them.
  const started = events.findLast(({ body }) => body.type === "turn.started")?.version ?? 0;
  const after = events.filter(({ version }) => version > started).slice(0, 2);
  expect(after.map(({ body }) => body.type)).toEqual(["envelope.left", "envelope.entered"]);
  const row = await t.heddle.journal.threads.envelope(threadId);
  expect(row).toMatchObject({ envelope: { id: "explore" }, ceiling: { id: "edit" }, stack: [], isLeft: false });
  const entered = told(events).findLast(({ type }) => type === "envelope.entered");
  expect(entered).toMatchObject({ envelopeHash: row?.hash });
});

test("a turn is in the envelope that its settings name; an unknown one and one above the ceiling are refused before admission", async () => {
  await using t = await openTestHeddle({ script: [say("one")] });
  const threadId = await run(t, { envelope: "review" });
  expect(await t.heddle.journal.threads.envelope(threadId)).toMatchObject({ envelope: { id: "review" } });
  const before = await t.events(threadId);
  await expect(run(t, { envelope: "revue" }, threadId)).rejects.toMatchObject({ code: "envelope.unknown" });
  await expect(run(t, { envelope: "edit", ceiling: "explore" }, threadId)).rejects.toMatchObject({
    code: "ceiling.exceeded",
  });
  await expect(run(t, { envelope: "edit", ceiling: "nothing" }, threadId)).rejects.toMatchObject({
    code: "envelope.unknown",
  });
  expect(await t.events(threadId)).toEqual(before);
  expect(await t.heddle.journal.threads.list({ limit: 9 })).toHaveLength(1);
});

test("D1: a turn in explore offers the model no tool that writes", async () => {
  await using server = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "some-model" },
  });
  await run(t, { envelope: "explore" });
  await run(t, { envelope: "edit" });
  const offers = server.requests.map(({ body }) => JSON.stringify(body).includes('"apply_patch"'));
  expect(offers).toEqual([false, true]);
});

test("D2, D3: a call of a tool that is not in the envelope does not run, and is evidence", async () => {
  await using t = await openTestHeddle({ script: [patch("made.txt"), say("done")] });
  const threadId = await run(t, { envelope: "explore" });
  await expect(readFile(join(t.workspace, "made.txt"))).rejects.toMatchObject({ code: "ENOENT" });
  const events = await t.events(threadId);
  expect(events.some(({ body }) => body.type === "tool.intended")).toBe(false);
  expect(events.find(({ body }) => body.type === "tool.settled")?.body).toMatchObject({
    tool: "apply_patch",
    outcome: "denied",
    failure: { code: "policy.denied", message: 'apply_patch is not available in the envelope "explore"' },
  });
});

test("envelopes of the home and of the workspace count, and a project's narrows what the sandbox mode gives", async () => {
  await using t = await openTestHeddle({ script: [patch("docs/a.txt"), patch("b.txt"), say("done"), say("again")] });
  await put(join(t.home, "envelopes"), "docs.yaml", "extends: edit\nwrite: [docs]\n");
  await mkdir(join(t.workspace, "docs"));
  const threadId = await run(t, { envelope: "docs" });
  const settled = (await t.events(threadId)).flatMap(({ body }) => (body.type === "tool.settled" ? [body] : []));
  expect(settled.map(({ outcome, failure }) => [outcome, failure?.code])).toEqual([
    ["ok", undefined],
    ["denied", "path.outside"],
  ]);
  await put(join(t.workspace, ".heddle", "envelopes"), "edit.yaml", "extends: edit\nlimits: {calls: 1}\n");
  await run(t, {}, threadId);
  expect(await t.heddle.journal.threads.envelope(threadId)).toMatchObject({
    envelope: { id: "edit", limits: { calls: 1 } },
  });
  await put(join(t.workspace, ".heddle", "envelopes"), "edit.yaml", "extends: edit\nnetwork: all\n");
  await expect(run(t, {}, threadId)).rejects.toMatchObject({ code: "envelope.invalid" });
});

test("an agent in a sandbox cannot write the envelopes of its project", async () => {
  const call = {
    calls: [{ tool: "exec_command", args: { cmd: "mkdir -p .heddle/envelopes && echo x > .heddle/envelopes/a.yaml" } }],
  };
  await using t = await openTestHeddle({ script: [patch(".heddle/envelopes/edit.yaml"), call, say("done")] });
  const threadId = await run(t);
  await expect(readFile(join(t.workspace, ".heddle", "envelopes", "a.yaml"))).rejects.toThrow();
  await expect(readFile(join(t.workspace, ".heddle", "envelopes", "edit.yaml"))).rejects.toThrow();
  expect(
    (await t.events(threadId)).flatMap(({ body }) => (body.type === "tool.settled" ? [body.outcome] : []))[0],
  ).toBe("denied");
});

test("D14: at a limit of its envelope a call is refused by code and recorded, also in the next turn", async () => {
  const read = { calls: [{ tool: "exec_command", args: { cmd: "true" } }] };
  await using t = await openTestHeddle({ script: [read, read, read, say("done"), read, say("again")] });
  await put(join(t.home, "envelopes"), "few.yaml", "extends: explore\nlimits: {calls: 2}\n");
  const outcomes = async (): Promise<unknown> =>
    (await t.events(threadId)).flatMap(({ body }) =>
      body.type === "tool.settled" ? [[body.outcome, body.failure?.code]] : [],
    );
  const threadId = await run(t, { envelope: "few" });
  const reached = ["denied", "envelope.limit-reached"];
  expect(await outcomes()).toEqual([["ok", undefined], ["ok", undefined], reached]);
  await run(t, { envelope: "few" }, threadId);
  expect(await outcomes()).toEqual([["ok", undefined], ["ok", undefined], reached, reached]);
  expect(await t.heddle.journal.threads.envelope(threadId)).toMatchObject({ calls: 2 });
});

test("D14: file tools write as many bytes as the envelope allows; what exceeds them is not written", async () => {
  await using t = await openTestHeddle({ script: [patch("a.txt"), patch("b.txt"), say("done")] });
  await put(join(t.home, "envelopes"), "few.yaml", "extends: edit\nlimits: {bytesWritten: 6}\n");
  const threadId = await run(t, { envelope: "few" });
  const settled = (await t.events(threadId)).flatMap(({ body }) => (body.type === "tool.settled" ? [body] : []));
  expect(settled).toMatchObject([
    { outcome: "ok", bytesWritten: 4 },
    { outcome: "failed", failure: { code: "envelope.limit-reached" } },
  ]);
  expect(await readFile(join(t.workspace, "a.txt"), "utf8")).toBe("new\n");
  await expect(readFile(join(t.workspace, "b.txt"))).rejects.toThrow();
  expect(await t.heddle.journal.threads.envelope(threadId)).toMatchObject({ bytesWritten: 4 });
});

test("D14: computing time of an envelope holds in its sandbox, the lower of it and the owner's", async () => {
  const call = { calls: [{ tool: "exec_command", args: { cmd: "ulimit -t" } }] };
  await using t = await openTestHeddle({
    script: [call, say("done"), call, say("done")],
    sandboxLimits: { cpuSec: 50 },
  });
  await put(join(t.home, "envelopes"), "short.yaml", "extends: edit\nlimits: {cpuSec: 7}\n");
  for (const [envelope, seconds] of [["short", 7] as const, ["edit", 50] as const]) {
    const bodies = (await t.events(await run(t, { envelope }))).map(({ body }) => body);
    const opened = bodies.find(({ type }) => type === "sandbox.opened");
    expect(opened).toMatchObject({ holds: { cpu: { by: "rlimit", maxSec: seconds } } });
    const ended = bodies.find((body) => body.type === "item.completed" && body.item.type === "commandExecution");
    expect(ended).toMatchObject({ item: { output: `${seconds}\n` } });
  }
});

test("D14: processes and memory of an envelope hold in its sandbox", async () => {
  const call = { calls: [{ tool: "exec_command", args: { cmd: "true" } }] };
  await using t = await openTestHeddle({ script: [call, say("done"), call, say("done")] });
  await put(join(t.home, "envelopes"), "few.yaml", "extends: edit\nlimits: {processes: 40, memoryBytes: 200000000}\n");
  const limits = async (envelope: string): Promise<number> => {
    const events = await t.events(await run(t, { envelope }));
    const opened = events.find(({ body }) => body.type === "sandbox.opened")?.body;
    return opened?.type === "sandbox.opened" ? (opened.holds.processes.max ?? Infinity) : 0;
  };
  // A host may count the processes that its user has outside too.
  const [few, plain] = [await limits("few"), await limits("edit")];
  expect(few).toBeGreaterThan(0);
  expect(few).toBeLessThan(plain);
});

test("what an envelope masks inside the workspace does not exist for commands either", async () => {
  const call = { calls: [{ tool: "exec_command", args: { cmd: "cat keys/one; cat open; echo seen" } }] };
  await using t = await openTestHeddle({ script: [call, say("done")] });
  await put(t.workspace, "keys/one", "a-key-in-the-workspace\n");
  await put(t.workspace, "open", "an-open-file\n");
  await put(join(t.home, "envelopes"), "blind.yaml", "extends: edit\nmasked: [keys]\n");
  const threadId = await run(t, { envelope: "blind" });
  const said = JSON.stringify((await t.events(threadId)).filter(({ body }) => body.type === "tool.settled"));
  expect(said).toContain("an-open-file");
  expect(said).not.toContain("a-key-in-the-workspace");
  expect(await readFile(join(t.workspace, "keys", "one"), "utf8")).toBe("a-key-in-the-workspace\n");
});

test("an envelope with a manifest lists its files when it is entered and left, and verify compares them", async () => {
  await using t = await openTestHeddle({ script: [patch("a.txt"), say("one"), say("two"), say("three")] });
  await put(t.home, "envelopes/careful.yaml", "id: careful\nextends: edit\nmanifest: true\n");
  const threadId = await run(t, { envelope: "careful" });
  await run(t, { envelope: "explore" }, threadId);
  const [, entered, , left, next] = told(await t.events(threadId));
  expect(entered).toMatchObject({ type: "envelope.entered", manifest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(left).toMatchObject({ type: "envelope.left", manifest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(next).not.toHaveProperty("manifest");
  const look = () => examine(t.heddle.journal, { home: t.home, level: 5, streams: [threadId] });
  const clean = await look();
  expect(clean.findings).toEqual([]);
  expect(clean.levels.at(-1)).toMatchObject({ level: 5, examined: 1 });
  // Behind its back: between two turns of the envelope that lists its files.
  await run(t, { envelope: "careful" }, threadId);
  await put(t.workspace, "b.txt", "not by the agent");
  await run(t, { envelope: "explore" }, threadId);
  expect((await look()).findings).toMatchObject([
    { code: "unexplained_change", message: expect.stringContaining("b.txt changed and no recorded call writes it") },
  ]);
});
