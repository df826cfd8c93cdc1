/**
 * What every runner promises, whatever agent is behind it; the runner is the argument. Its agent is told in steps what to do,
 * and what is looked at is what the turn has left in the journal and in the workspace.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventBody, EventOf, EventType, HookEvent, StoredEvent } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { openTestHeddle, type TestHeddle, type TestHeddleOptions } from "../../test/test-heddle.ts";
import { RUNNER_EVENTS } from "./runner.ts";

/** What the agent does next: says something, or runs a command and goes on. With `asksOut` it asks to run it without a sandbox. */
export type AgentStep = { readonly says: string } | { readonly runs: string; readonly asksOut?: boolean };

export interface RunnerSubject {
  readonly name: string;
  /** For a Heddle whose agent takes these steps. */
  options(steps: readonly AgentStep[]): TestHeddleOptions;
  /** Arguments of Node for a process that takes the steps in a folder, and prints the thread's id at output with "mark". */
  inChild(folder: string, steps: readonly AgentStep[]): readonly string[];
}

/** An interrupt ends what runs: a command may take its time to end, and no more than that. */
const INTERRUPT_MS = 6000;

const MAKE = { runs: "echo made > made.txt" };
const DONE = { says: "done" };

export function runnerSuite(subject: RunnerSubject): void {
  const open = (steps: readonly AgentStep[], options: TestHeddleOptions = {}): Promise<TestHeddle> =>
    openTestHeddle({ ...subject.options(steps), ...options });
  describe(`14.6: the runner ${subject.name}`, () => {
    promisesOfEnds(subject, open);
    promisesOfPolicy(open);
  });
}

type Open = (steps: readonly AgentStep[], options?: TestHeddleOptions) => Promise<TestHeddle>;

function promisesOfEnds(subject: RunnerSubject, open: Open): void {
  test("ends a turn once, closes every item, and records nothing but what a runner may", async () => {
    await using t = await open([MAKE, DONE]);
    const turn = await t.start("make a file");
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(true);
    const events = await t.events(turn.threadId);
    expectClosed(events);
    const own = events.filter(({ author }) => author === `agent:${subject.name}`).map(({ body }) => body.type);
    expect(own).not.toEqual([]);
    const allowed = new Set<EventType>([...RUNNER_EVENTS, "item.checkpointed"]);
    expect(own.filter((type) => !allowed.has(type))).toEqual([]);
    expect(ofType(events, "turn.started")).toMatchObject([{ runner: subject.name }]);
  });

  test("stops in time when it is told to, with the output of what ran", async () => {
    await using t = await open([{ runs: "echo mark; sleep 300" }, DONE]);
    const turn = await t.start("wait");
    const marked = Promise.withResolvers<void>();
    using _listener = t.heddle.onDelta(turn.threadId, ({ channel }) => channel === "output" && marked.resolve());
    await marked.promise;
    const before = performance.now();
    const reason = { code: "turn.interrupted", message: "enough" } as const;
    await t.heddle.as("user:owner").interrupt(turn.turnId, reason);
    expect((await turn.done).body).toMatchObject({ status: "interrupted", failure: reason });
    expect(performance.now() - before).toBeLessThan(INTERRUPT_MS);
    const events = await t.events(turn.threadId);
    expectClosed(events);
    expect(commandEnds(events)).toMatchObject([{ item: { status: "interrupted", output: "mark\n" } }]);
  });

  test("leaves to recovery, when it is killed, an intent that is not run again and a turn with one end", async () => {
    const folder = await mkdtemp(join(tmpdir(), "heddle-runner-"));
    await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
    const threadId = await killedAtMark(subject.inChild(folder, [{ runs: "echo mark; sleep 300" }, DONE]));
    await using t = await open([DONE], { folder });
    expect(t.heddle.recoveredTurns).toBe(1);
    const events = await t.events(threadId);
    expectClosed(events);
    expect(ofType(events, "turn.completed")).toMatchObject([
      { status: "interrupted", failure: { code: "turn.abandoned" } },
    ]);
    expect(ofType(events, "tool.settled").map(({ outcome }) => outcome)).toEqual(["unknown"]);
    expect(commandEnds(events)).toMatchObject([{ item: { status: "unknown" } }]);
  });
}

function promisesOfPolicy(open: Open): void {
  test("asks before it acts, tells the agent what was added, and does not ask twice for one act", async () => {
    await using t = await open([MAKE, MAKE, DONE], { isUnattended: false, settings: { approvalPolicy: "untrusted" } });
    const turn = await t.start("make a file");
    const { approvalId } = await t.next(turn.threadId, "approval.requested");
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
    const user = t.heddle.as("user:owner");
    await t.heddle.as("user:other").steer(turn.turnId, [{ type: "text", text: "and quickly" }]);
    await user.answer({ threadId: turn.threadId, approvalId, decision: "acceptForThread" });
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    const events = await t.events(turn.threadId);
    expectClosed(events);
    expect(ofType(events, "approval.requested")).toHaveLength(1);
    expect(ofType(events, "tool.settled").map(({ outcome }) => outcome)).toEqual(["ok", "ok"]);
    const told = events.find(({ body }) => isMessage(body, "and quickly"));
    expect(told?.author).toBe("user:other");
  });

  test("asks the hooks at their points, and does nothing that one refuses", async () => {
    const points: HookEvent[] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"];
    const hooks = points.map((event) => ({
      event,
      command: event === "PreToolUse" ? "echo no >&2; exit 2" : "true",
    }));
    await using t = await open([MAKE, DONE], { hooks });
    const turn = await t.start("make a file");
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    const events = await t.events(turn.threadId);
    expectClosed(events);
    expect(ofType(events, "hook.ran").map(({ event }) => event)).toEqual(points);
    expect(ofType(events, "tool.settled").map(({ outcome }) => outcome)).toEqual(["denied"]);
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
  });

  test("tells the hooks of what was done", async () => {
    await using t = await open([MAKE, DONE], { hooks: [{ event: "PostToolUse", command: "true" }] });
    const turn = await t.start("make a file");
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    const events = await t.events(turn.threadId);
    const types = events.map(({ body }) => body.type);
    expect(ofType(events, "hook.ran").map(({ event }) => event)).toEqual(["PostToolUse"]);
    expect(types.indexOf("hook.ran")).toBeGreaterThan(types.indexOf("tool.settled"));
  });

  test("leaves its envelope by a recorded hop alone: after a yes, and never above the ceiling", async () => {
    const steps = [{ ...MAKE, asksOut: true }, DONE];
    const settings = { approvalPolicy: "on-request" } as const;
    await using t = await open(steps, { isUnattended: false, settings });
    const allowed = await t.start("make a file");
    const { approvalId } = await t.next(allowed.threadId, "approval.requested");
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
    await t.heddle.as("user:owner").answer({ threadId: allowed.threadId, approvalId, decision: "accept" });
    expect((await allowed.done).body).toMatchObject({ status: "completed" });
    const events = await t.events(allowed.threadId);
    expect(ofType(events, "hop.taken")).toMatchObject([{ scope: "call" }]);
    expect(events.find(({ body }) => body.type === "hop.taken")?.author).toBe("user:owner");

    await using low = await open(steps, { isUnattended: false, settings: { ...settings, ceiling: "workspace-write" } });
    const refused = await low.start("make a file");
    expect((await refused.done).body).toMatchObject({ status: "completed" });
    const others = await low.events(refused.threadId);
    expectClosed(others);
    expect(ofType(others, "hop.taken")).toEqual([]);
    expect(ofType(others, "hop.refused")).toHaveLength(1);
    expect(ofType(others, "tool.settled").map(({ outcome }) => outcome)).toEqual(["denied"]);
  });

  test("ends with the limit of its turn", async () => {
    await using t = await open([MAKE, DONE], { settings: { limits: { maxRequests: 1 } } });
    const turn = await t.start("make a file");
    const failure = { code: "limit.reached", details: { limit: "turns", allowed: 1, used: 1 } };
    expect((await turn.done).body).toMatchObject({ status: "failed", failure });
    const events = await t.events(turn.threadId);
    expectClosed(events);
    expect(ofType(events, "model.requested")).toHaveLength(1);
  });
}

async function killedAtMark(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], timeout: 30_000 });
  try {
    const [threadId] = await once(child.stdout, "data");
    return String(threadId).trim();
  } finally {
    child.kill("SIGKILL");
    await once(child, "close");
  }
}

/** One terminal event, the last of all; every item and every intent of the turn has one end before it. */
function expectClosed(events: readonly StoredEvent[]): void {
  expect(ofType(events, "turn.completed")).toHaveLength(1);
  expect(events.at(-1)?.body.type).toBe("turn.completed");
  const ids = (type: "item.started" | "item.completed"): string[] => ofType(events, type).map(({ item }) => item.id);
  expect(ids("item.completed").toSorted()).toEqual(ids("item.started").toSorted());
  const settled = ofType(events, "tool.settled").map(({ itemId }) => itemId);
  const open = ofType(events, "tool.intended").filter(({ itemId }) => !settled.includes(itemId));
  expect(open).toEqual([]);
  expect(new Set(settled).size).toBe(settled.length);
}

function commandEnds(events: readonly StoredEvent[]): EventOf<"item.completed">[] {
  return ofType(events, "item.completed").filter(({ item }) => item.type === "commandExecution");
}

function isMessage(body: EventBody, text: string): boolean {
  if (body.type !== "item.completed" || body.item.type !== "userMessage") return false;
  return body.item.content.some((part) => part.type === "text" && part.text === text);
}

function ofType<T extends EventType>(events: readonly StoredEvent[], type: T): EventOf<T>[] {
  return events.map(({ body }) => body).filter((body): body is EventOf<T> => body.type === type);
}
