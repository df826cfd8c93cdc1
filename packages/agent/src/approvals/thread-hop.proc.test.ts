import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { hopCall, openHopHeddle, type HopHeddle } from "../../test/hop-heddle.ts";

const say = { text: "done" };
const OWNER = "user:owner";

async function idleThread(t: HopHeddle): Promise<string> {
  const turn = await t.start("look around");
  await turn.done;
  return turn.threadId;
}

test("a user takes an idle thread where an edge for users leads, and back again", async () => {
  await using t = await openHopHeddle({ script: [say, say] });
  const threadId = await idleThread(t);
  const owner = t.heddle.as(OWNER);
  const there = await owner.hopThread({ threadId, to: "edit", reason: "the cause is found" });
  expect(there).toMatchObject({ from: "look", to: "edit", depth: 1 });
  expect(await owner.hopThread({ threadId, to: "back", reason: "not yet" })).toMatchObject({ to: "look", depth: 0 });
  const events = (await t.events(threadId)).filter(({ body }) => body.type.startsWith("envelope."));
  expect(events.map(({ author, body }) => [author, body.type, "duringTurn" in body])).toEqual([
    ["system", "envelope.entered", true],
    [OWNER, "envelope.left", false],
    [OWNER, "envelope.entered", false],
    [OWNER, "envelope.left", false],
    [OWNER, "envelope.entered", false],
  ]);
  expect(events[2]?.body).toMatchObject({ hop: { channel: "user", reason: "the cause is found", guards: [] } });
});

test.each([
  ["review", "hop.not-authorized"],
  ["explore", "hop.no-edge"],
  ["nowhere", "hop.unknown-envelope"],
  ["look", "hop.same-envelope"],
  ["back", "hop.no-edge"],
])("a user's hop to %s is refused with %s, on record", async (to, code) => {
  await using t = await openHopHeddle({ script: [say] });
  const threadId = await idleThread(t);
  await expect(t.heddle.as(OWNER).hopThread({ threadId, to, reason: "try" })).rejects.toMatchObject({ code });
  expect(await t.bodies(threadId, "envelope.hop-refused")).toMatchObject([
    { from: "look", hop: { channel: "user" }, failure: { code } },
  ]);
});

test("the ceiling holds for a user, and who may not leave the sandbox does not", async () => {
  await using t = await openHopHeddle({ script: [say], settings: { ceiling: "edit" } });
  const threadId = await idleThread(t);
  const full = { threadId, to: "full", reason: "try" };
  await expect(t.heddle.as(OWNER).hopThread(full)).rejects.toMatchObject({ code: "ceiling.exceeded" });
  await using open = await openHopHeddle({ script: [say] });
  const other = await idleThread(open);
  const asUser = { ...full, threadId: other, staysInSandbox: true };
  await expect(open.heddle.as(OWNER).hopThread(asUser)).rejects.toMatchObject({ code: "door.forbidden" });
  expect(await open.path(other)).toEqual(["look"]);
});

test("while a turn runs a user's hop is refused with hop.busy, and a thread without a turn is in no envelope", async () => {
  const script = [{ calls: [hopCall("review")] }, say];
  await using t = await openHopHeddle({ isUnattended: false, settings: { approvalPolicy: "on-request" }, script });
  const turn = await t.start("ask first");
  const { threadId } = turn;
  const { approvalId } = await t.next(threadId, "approval.requested");
  const hop = { threadId, to: "edit", reason: "now" };
  await expect(t.heddle.as(OWNER).hopThread(hop)).rejects.toMatchObject({ code: "hop.busy" });
  await t.heddle.as(OWNER).answer({ threadId, approvalId, decision: "accept" });
  await turn.done;
  expect(await t.path(threadId)).toEqual(["look", "review"]);
  const fresh = await t.heddle.as(OWNER).createThread({ workspace: t.workspace, origin: "test" });
  const none = t.heddle.as(OWNER).hopThread({ ...hop, threadId: fresh });
  await expect(none).rejects.toMatchObject({ code: "usage.invalid" });
});

/** Dies at the failpoint. */
function hopAndDie(folder: string, by: string, failpoint: string): void {
  const env = { PATH: process.env["PATH"], TMPDIR: tmpdir(), HEDDLE_FAILPOINT: failpoint };
  const args = [join(inject("children"), "hop-in-child.mjs"), folder, by];
  const child = spawnSync(process.execPath, args, { env, timeout: 90_000, encoding: "utf8" });
  expect([child.signal, child.stderr]).toEqual(["SIGKILL", ""]);
}

async function onlyThread(t: HopHeddle): Promise<string> {
  return (await t.heddle.journal.threads.list({ limit: 2 })).map(({ id }) => id).join();
}

test("H6: a question about a hop outlives its process, and the hop is taken by the one that carries the turn on", async () => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-hops-"));
  try {
    hopAndDie(folder, "asking", "approval.after-request=kill");
    const settings = { approvalPolicy: "on-request" } as const;
    await using t = await openHopHeddle({ folder, isUnattended: false, settings, script: [say, say] });
    const threadId = await onlyThread(t);
    const { approvalId } = await t.next(threadId, "approval.requested");
    await t.heddle.as(OWNER).answer({ threadId, approvalId, decision: "accept" });
    expect(await t.next(threadId, "turn.completed")).toMatchObject({ status: "completed" });
    expect(await t.path(threadId)).toEqual(["look", "review"]);
    expect((await t.bodies(threadId, "envelope.entered"))[1]?.hop).toMatchObject({ channel: "model", approvalId });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("H13: of 100 hops, stops and closes at once each envelope is left exactly once", async () => {
  await using t = await openHopHeddle({ isUnattended: false, script: [say] });
  await using other = await openHopHeddle({ folder: t.folder, isUnattended: false });
  const threadId = await idleThread(t);
  const acts = Array.from({ length: 100 }, (_, index) => {
    const owner = (index % 2 === 0 ? t : other).heddle.as(OWNER);
    switch (index % 5) {
      case 0:
      case 1:
        return owner.hopThread({ threadId, to: "edit", reason: `${index}` });
      case 2:
        return owner.hopThread({ threadId, to: "back", reason: `${index}` });
      case 3:
        return t.heddle.endCommands(threadId);
      default:
        return owner.archiveThread({ threadId, isArchived: index % 2 === 0 });
    }
  });
  const ends = await Promise.allSettled(acts);
  const codes = new Set(ends.flatMap((end) => (end.status === "rejected" ? [end.reason.code] : [])));
  for (const code of codes) expect(["hop.same-envelope", "hop.no-edge", "store.busy"]).toContain(code);
  const events = (await t.events(threadId)).filter(
    ({ body }) => body.type === "envelope.entered" || body.type === "envelope.left",
  );
  const hashes: string[] = [];
  for (const [index, { body, version }] of events.entries()) {
    if (body.type !== "envelope.entered" && body.type !== "envelope.left") continue;
    // Entered, left, entered, left …: each leave is of the one before it, and next to what it makes room for.
    expect(body.type).toBe(index % 2 === 0 ? "envelope.entered" : "envelope.left");
    if (body.type === "envelope.left") expect(body.envelopeHash).toBe(hashes.at(-1));
    else if (index > 0) expect(version).toBe((events[index - 1]?.version ?? 0) + 1);
    hashes.push(body.envelopeHash);
  }
  expect(events.length).toBeGreaterThan(1);
  expect((await t.heddle.journal.threads.envelope(threadId))?.hash).toBe(hashes.at(-1));
}, 60_000);

test.each([
  ["hop.before-enter=kill", "model", ["look"]],
  ["hop.after-enter=kill", "model", ["look", "edit"]],
  ["hop.before-enter=kill", "user", ["look"]],
  ["hop.after-enter=kill", "user", ["look", "edit"]],
] as const)("H9: killed at %s of a hop by the %s, the thread is in one envelope", async (failpoint, by, path) => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-hops-"));
  try {
    hopAndDie(folder, by, failpoint);
    await using t = await openHopHeddle({ folder, script: [say, say, say] });
    const threadId = await onlyThread(t);
    expect(await t.path(threadId)).toEqual(path);
    expect(await t.bodies(threadId, "envelope.left")).toHaveLength(path.length - 1);
    await t.again(threadId);
    expect((await t.bodies(threadId, "turn.started")).at(-1)?.envelope.id).toBe(path.at(-1));
    expect(await t.path(threadId)).toEqual(path);
    expect((await t.heddle.journal.verify(threadId)).damage).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
