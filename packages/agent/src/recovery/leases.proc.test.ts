/** Two processes on one home, as one host and as two. The second host is a process with another HEDDLE_HOST_ID. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { openTestHeddle, type TestHeddleOptions } from "../../test/test-heddle.ts";

const LEASE_MS = 1500;
const sh = (cmd: string) => ({ tool: "exec_command", args: { cmd } });
/** Its second call is an effect that must not happen once the turn is lost. */
const script = [
  { calls: [sh("touch begun; while [ ! -e go ]; do sleep 0.05; done")] },
  { calls: [sh("echo once >> effects")] },
  { text: "done" },
];

interface Owner extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly threadId: string;
  readonly turnId: string;
  /** How its turn ended, as the process itself says. */
  ended(): Promise<unknown>;
}

interface Fixture extends AsyncDisposable {
  readonly folder: string;
  file(name: string): string;
  start(options: TestHeddleOptions & { readonly host?: string }): Promise<Owner>;
}

async function openFixture(): Promise<Fixture> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-leases-"));
  return {
    folder,
    file: (name) => join(folder, "workspace", name),
    async start({ host, ...options }) {
      const given = JSON.stringify({ folder, script, leaseMs: LEASE_MS, ...options });
      const child = spawn(process.execPath, [join(inject("children"), "leased-in-child.mjs"), given], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, ...(host === undefined ? {} : { HEDDLE_HOST_ID: host }) },
      });
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      const line = async () => JSON.parse(String((await lines.next()).value));
      const { threadId, turnId } = await line();
      return {
        child,
        threadId,
        turnId,
        ended: line,
        async [Symbol.asyncDispose]() {
          child.kill("SIGCONT");
          child.kill("SIGKILL");
          if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
        },
      };
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(10);
}

test("R3: 14.7: an owner that renews its lease is alive; a stopped owner on another host is taken over when its lease runs out, and refused when it wakes up", async () => {
  await using fixture = await openFixture();
  await using owner = await fixture.start({ host: "other-host" });
  const { threadId, turnId, child } = owner;
  await until(() => existsSync(fixture.file("begun")));
  await using t = await openTestHeddle({ folder: fixture.folder, isUnattended: false, leaseMs: LEASE_MS });
  // Another host, another boot or not: it renews, so it lives.
  await delay(1.5 * LEASE_MS);
  expect(await t.heddle.journal.threads.turn(turnId)).toMatchObject({ status: "open" });
  await expect(t.start("me too", { thread: threadId })).rejects.toMatchObject({ code: "turn.active" });

  child.kill("SIGSTOP");
  const stoppedAt = performance.now();
  expect(await t.next(threadId, "turn.completed")).toMatchObject({
    turnId,
    status: "interrupted",
    failure: { code: "turn.abandoned", message: expect.stringContaining("lease") },
  });
  expect(performance.now() - stoppedAt).toBeGreaterThan(LEASE_MS / 3);
  const events = await t.events(threadId);
  writeFileSync(fixture.file("go"), "");
  child.kill("SIGCONT");
  const lost = `the lease of ${turnId} with epoch 1 is lost`;
  expect(await owner.ended()).toEqual({ code: "lease.lost", log: [expect.stringContaining(lost)], commands: 0 });
  expect(await t.events(threadId)).toEqual(events);
  expect(existsSync(fixture.file("effects"))).toBe(false);
  // What was under way is unknown, and not run again.
  expect(events.filter(({ body }) => body.type === "tool.settled")).toMatchObject([{ body: { outcome: "unknown" } }]);
  expect(await t.heddle.journal.leases.held()).toEqual([]);
});

test("14.7: a question is carried on under the next epoch by another host, and its call runs once", async () => {
  await using fixture = await openFixture();
  const asks: TestHeddleOptions = {
    script: script.slice(1),
    isUnattended: false,
    settings: { approvalPolicy: "untrusted" },
  };
  await using owner = await fixture.start({ host: "other-host", ...asks });
  const { threadId, turnId, child } = owner;
  await using t = await openTestHeddle({ folder: fixture.folder, leaseMs: LEASE_MS, ...asks });
  const { approvalId } = await t.next(threadId, "approval.requested");
  child.kill("SIGSTOP");
  while (!(await isOver(t))) await delay(20);
  await t.heddle.as("user:owner").answer({ threadId, approvalId, decision: "accept" });
  expect(await t.next(threadId, "turn.resumed")).toMatchObject({ turnId, epoch: 2 });
  expect(await t.next(threadId, "turn.completed")).toMatchObject({ turnId, status: "completed" });
  const events = await t.events(threadId);
  child.kill("SIGCONT");
  expect(await owner.ended()).toMatchObject({ code: "lease.lost", commands: 0 });
  expect(readFileSync(fixture.file("effects"), "utf8")).toBe("once\n");
  expect(await t.events(threadId)).toEqual(events);
});

test("14.7: a stopped owner on the same host is alive, however long its lease has run out", async () => {
  await using fixture = await openFixture();
  await using owner = await fixture.start({ leaseMs: 300 });
  const { turnId, child } = owner;
  await until(() => existsSync(fixture.file("begun")));
  child.kill("SIGSTOP");
  await delay(900);
  await using t = await openTestHeddle({ folder: fixture.folder, isUnattended: false, leaseMs: 300 });
  expect(t.heddle.recoveredTurns).toBe(0);
  await delay(900);
  expect(await t.heddle.journal.threads.turn(turnId)).toMatchObject({ status: "open" });
  writeFileSync(fixture.file("go"), "");
  child.kill("SIGCONT");
  expect(await owner.ended()).toMatchObject({ status: "completed" });
  expect(readFileSync(fixture.file("effects"), "utf8")).toBe("once\n");
});

test("R5: 14.7: a killed owner on the same host is recovered at once, long before its lease has run out, and that is recorded", async () => {
  await using fixture = await openFixture();
  await using owner = await fixture.start({ leaseMs: 3_600_000 });
  await until(() => existsSync(fixture.file("begun")));
  owner.child.kill("SIGKILL");
  await once(owner.child, "exit");
  const killedAt = performance.now();
  await using t = await openTestHeddle({ folder: fixture.folder });
  expect(t.heddle.recoveredTurns).toBe(1);
  expect(performance.now() - killedAt).toBeLessThan(5000);
  expect((await t.events(owner.threadId)).at(-1)?.body).toMatchObject({
    type: "turn.completed",
    turnId: owner.turnId,
    status: "interrupted",
    failure: { code: "turn.abandoned" },
  });
});

test("R6: 14.7: a run on another host waits until it is certain that a lease has run out, and then goes on with the thread", async () => {
  await using fixture = await openFixture();
  await using owner = await fixture.start({ host: "other-host" });
  await until(() => existsSync(fixture.file("begun")));
  owner.child.kill("SIGKILL");
  await once(owner.child, "exit");
  await delay(LEASE_MS);
  await using t = await openTestHeddle({ folder: fixture.folder, script: [{ text: "on" }], leaseMs: LEASE_MS });
  expect(t.heddle.recoveredTurns).toBe(0);
  const turn = await t.start("go on", { thread: owner.threadId });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
});

async function isOver({ heddle }: Awaited<ReturnType<typeof openTestHeddle>>): Promise<boolean> {
  const [lease] = await heddle.journal.leases.held();
  return lease !== undefined && heddle.journal.leases.isOver(lease.holder);
}
