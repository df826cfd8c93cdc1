/** Gates on the way of a hop, and by themselves: each leaves its way as a proof, passed or refused. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gateHash } from "@heddle/tools";
import { examine } from "@heddle/journal/verification";
import { expect, test } from "vitest";
import { hopCall, openHopHeddle, type HopHeddle } from "../../test/hop-heddle.ts";
import type { TestHeddleOptions } from "../../test/test-heddle.ts";

const READY = `
guards:
  - { kind: files, exist: [PLAN.md] }
  - { kind: evidence, query: { type: turn.admitted } }
`;
const GATED = `
extends: explore
exits:
  - { to: edit, by: [model, user], approval: auto, guards: [{ kind: gate, name: ready }] }
  - to: plan
    by: [user]
    approval: auto
    guards: [{ kind: evidence, query: { subject: { type: gate, id: ready }, tags: [passed] }, sinceEntered: true }]
`;
const say = { text: "done" };
const OWNER = "user:owner";

async function openGated(options: TestHeddleOptions = {}): Promise<HopHeddle> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-gates-"));
  const put = async (kind: string, name: string, text: string): Promise<void> => {
    await mkdir(join(folder, "home", kind), { recursive: true, mode: 0o700 });
    await writeFile(join(folder, "home", kind, name), text);
  };
  await put("gates", "ready.yaml", READY);
  await put("envelopes", "gated.yaml", GATED);
  const t = await openHopHeddle({ ...options, folder, settings: { envelope: "gated" } });
  return {
    ...t,
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function plan(t: HopHeddle): Promise<void> {
  await writeFile(join(t.workspace, "PLAN.md"), "look, then change\n");
}

async function verified(t: HopHeddle, threadId: string): Promise<readonly string[]> {
  const home = join(t.folder, "home");
  const { findings } = await examine(t.heddle.journal, { home, streams: [threadId], level: 4 });
  return findings.filter(({ level }) => level >= 3).map(({ code, message }) => `${code}: ${message}`);
}

test("a model's hop through a gate is refused, then passes, and both ways are on record before it", async () => {
  await using t = await openGated({ script: [{ calls: [hopCall("edit")] }, say, { calls: [hopCall("edit")] }, say] });
  const turn = await t.start("go on");
  const { threadId } = turn;
  await turn.done;
  await plan(t);
  await t.again(threadId);
  expect(await t.path(threadId)).toEqual(["gated", "edit"]);
  const [refused] = await t.bodies(threadId, "gate.refused");
  const [passed] = await t.bodies(threadId, "gate.passed");
  const admitted = (await t.events(threadId)).filter(({ body }) => body.type === "turn.admitted").map(({ id }) => id);
  const [started] = await t.bodies(threadId, "turn.started");
  const envelopeHash = started?.envelopeHash;
  const guards = started?.envelope.exits?.[0]?.guards?.[0];
  expect(guards).toMatchObject({ kind: "gate", name: "ready", guards: [{ kind: "files" }, { kind: "evidence" }] });
  const facts = { gate: { name: "ready" }, envelopeHash, hop: { to: "edit", channel: "model" } };
  expect(refused).toMatchObject({ ...facts, path: [{ kind: "files", isMet: false, found: "PLAN.md does not exist" }] });
  expect(passed).toMatchObject({
    ...facts,
    path: [
      { kind: "files", isMet: true },
      { kind: "evidence", isMet: true, entries: [admitted.at(-1)] },
    ],
  });
  expect(passed?.gateHash).toBe(passed === undefined ? "" : gateHash(passed.gate));
  expect((await t.bodies(threadId, "envelope.hop-refused"))[0]).toMatchObject({
    hop: { guards: [{ kind: "gate", isMet: false, gateId: refused?.gateId }] },
    failure: { code: "hop.guard-failed", message: expect.stringContaining("PLAN.md does not exist") },
  });
  expect((await t.bodies(threadId, "envelope.entered"))[1]?.hop?.guards).toEqual([
    { kind: "gate", isMet: true, found: "ready: 2 of 2 met", gateId: passed?.gateId },
  ]);
  // In one append with what they are for.
  const types = (await t.events(threadId)).map(({ body }) => body.type);
  expect(types[types.indexOf("gate.refused") + 1]).toBe("envelope.hop-refused");
  expect(types.slice(types.indexOf("gate.passed")).slice(1, 3)).toEqual(["envelope.left", "envelope.entered"]);
  expect(await verified(t, threadId)).toEqual([]);
});

test("a gate by itself leaves a proof as evidence, which a later guard can ask for", async () => {
  await using t = await openGated({ script: [say] });
  const turn = await t.start("look");
  await turn.done;
  const { threadId } = turn;
  const owner = t.heddle.as(OWNER);
  const first = await owner.runGate({ threadId, name: "ready" });
  expect(first).toMatchObject({ isPassed: false, proof: { gate: { name: "ready" }, path: [{ isMet: false }] } });
  const hop = { threadId, to: "plan", reason: "it is ready" };
  await expect(owner.hopThread(hop)).rejects.toMatchObject({ code: "hop.guard-failed" });
  await plan(t);
  const { isPassed, entryId } = await owner.runGate({ threadId, name: "ready" });
  expect(isPassed).toBe(true);
  const { evidence } = t.heddle.journal;
  const { entries } = await evidence.query({ subject: { type: "gate", id: "ready" } });
  expect(entries.map(({ id, type, author, tags }) => ({ id, type, author, tags }))).toEqual([
    { id: entryId, type: "gate.passed", author: OWNER, tags: ["passed"] },
    { id: first.entryId, type: "gate.refused", author: OWNER, tags: ["failed"] },
  ]);
  const [seen] = entries[0]?.refs.filter(({ type }) => type === "evidence") ?? [];
  expect((await evidence.get(seen?.id ?? ""))?.type).toBe("turn.admitted");
  expect(await owner.hopThread(hop)).toMatchObject({ to: "plan" });
  expect((await t.bodies(threadId, "envelope.entered"))[1]?.hop?.guards).toMatchObject([{ entries: [entryId] }]);
  expect(await verified(t, threadId)).toEqual([]);
});

test("a gate that nobody declared, in a thread that works or has not begun, is refused and leaves nothing", async () => {
  await using t = await openGated({ script: [say] });
  const owner = t.heddle.as(OWNER);
  const fresh = await owner.createThread({ workspace: t.workspace, origin: "test" });
  await expect(owner.runGate({ threadId: fresh, name: "ready" })).rejects.toMatchObject({ code: "usage.invalid" });
  const turn = await t.start("look");
  await turn.done;
  const { threadId } = turn;
  await expect(owner.runGate({ threadId, name: "redy" })).rejects.toMatchObject({
    code: "gate.unknown",
    message: expect.stringContaining('did you mean "ready"?'),
  });
  expect(await t.bodies(threadId, "gate.passed", "gate.refused")).toEqual([]);
});

test("a gate of the project is run by its name, in the sandbox of the envelope that the thread is in", async () => {
  await using t = await openGated({ script: [say] });
  await mkdir(join(t.workspace, ".heddle", "gates"), { recursive: true });
  const write = 'guards: [{ kind: command, command: [/bin/sh, -c, "echo x > made"] }]\n';
  await writeFile(join(t.workspace, ".heddle", "gates", "writes.yaml"), write);
  const turn = await t.start("look");
  await turn.done;
  const run = await t.heddle.as(OWNER).runGate({ threadId: turn.threadId, name: "writes" });
  expect(run).toMatchObject({ isPassed: false, proof: { path: [{ kind: "command", isMet: false }] } });
  expect(run.proof.path[0]?.found).toMatch(/Read-only file system|Permission denied/);
});
