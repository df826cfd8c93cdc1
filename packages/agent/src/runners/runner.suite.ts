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
import { stateOf } from "../recovery/holder.ts";
import type { RunnerCapabilities } from "./abilities.ts";
import { RUNNER_EVENTS } from "./runner.ts";

/** What the agent does next: says something, or runs a command and goes on. With `asksOut` it asks to run it without a sandbox. */
export type AgentStep = { readonly says: string } | { readonly runs: string; readonly asksOut?: boolean };

export interface RunnerSubject {
  readonly name: string;
  /** What is not declared is not asked of it. */
  readonly capabilities: RunnerCapabilities;
  /** For a Heddle whose agent takes these steps. */
  options(steps: readonly AgentStep[]): TestHeddleOptions;
  /** Arguments of Node for a process that takes the steps in a folder, and prints the thread's id when a command runs. */
  inChild(folder: string, steps: readonly AgentStep[]): readonly string[];
}

/** An interrupt ends what runs: a command may take its time to end, and no more than that. */
const INTERRUPT_MS = 6000;

const MAKE = { runs: "echo made > made.txt" };
const DONE = { says: "done" };

export function runnerSuite(subject: RunnerSubject): void {
  const open = (steps: readonly AgentStep[], options: TestHeddleOptions = {}): Promise<TestHeddle> =>
    openTestHeddle(joined(subject.options(steps), options));
  describe(`14.6: the runner ${subject.name}`, () => {
    promisesOfEnds(subject, open);
    promisesOfPolicy(subject, open);
    if (subject.capabilities.hooks) promisesOfCalls(open);
    else promisesOfOutsideAgents(subject, open);
  });
}

/** Settings of a test are beside those that choose the runner. */
function joined(own: TestHeddleOptions, options: TestHeddleOptions): TestHeddleOptions {
  return { ...own, ...options, settings: { ...own.settings, ...options.settings } };
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
    const { liveOutput } = subject.capabilities;
    const marked = Promise.withResolvers<void>();
    using _listener = t.heddle.onDelta(turn.threadId, ({ channel }) => channel === "output" && marked.resolve());
    await (liveOutput ? marked.promise : commandBegins(t, turn.threadId));
    const before = performance.now();
    const reason = { code: "turn.interrupted", message: "enough" } as const;
    await t.heddle.as("user:owner").interrupt(turn.turnId, reason);
    expect((await turn.done).body).toMatchObject({ status: "interrupted", failure: reason });
    expect(performance.now() - before).toBeLessThan(INTERRUPT_MS);
    const events = await t.events(turn.threadId);
    expectClosed(events);
    const output = liveOutput ? { output: "mark\n" } : {};
    expect(commandEnds(events)).toMatchObject([{ item: { status: "interrupted", ...output } }]);
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
    expect(commandEnds(events)).toMatchObject([{ item: { status: "unknown" } }]);
    const calls = ofType(events, "tool.settled").map(({ outcome }) => outcome);
    expect(calls).toEqual(subject.capabilities.hooks ? ["unknown"] : []);
    expect(ofType(events, "agent.ended").map(({ end }) => end)).toEqual(subject.capabilities.hooks ? [] : ["left"]);
    for (const { process } of ofType(events, "agent.started")) expect(stateOf(process)).toBe("dead");
  });
}

function promisesOfPolicy(subject: RunnerSubject, open: Open): void {
  const { capabilities } = subject;
  test.runIf(capabilities.asksFirst)(
    "asks before it acts, tells the agent what was added, and does not ask twice for one act",
    async () => {
      await using t = await open([MAKE, MAKE, DONE], {
        isUnattended: false,
        settings: { approvalPolicy: "untrusted" },
      });
      const turn = await t.start("make a file");
      const { approvalId } = await t.next(turn.threadId, "approval.requested");
      expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
      const user = t.heddle.as("user:owner");
      if (capabilities.steering) {
        await t.heddle.as("user:other").steer(turn.turnId, [{ type: "text", text: "and quickly" }]);
      } else {
        const refused = t.heddle.as("user:other").steer(turn.turnId, [{ type: "text", text: "and quickly" }]);
        await expect(refused).rejects.toMatchObject({ code: "runner.unsupported" });
      }
      await user.answer({ threadId: turn.threadId, approvalId, decision: "acceptForThread" });
      expect((await turn.done).body).toMatchObject({ status: "completed" });
      const events = await t.events(turn.threadId);
      expectClosed(events);
      expect(ofType(events, "approval.requested")).toHaveLength(1);
      expect(commandEnds(events).map(({ item }) => "status" in item && item.status)).toEqual([
        "completed",
        "completed",
      ]);
      const told = events.find(({ body }) => isMessage(body, "and quickly"));
      expect(told?.author).toBe(capabilities.steering ? "user:other" : undefined);
    },
  );

  test.runIf(!capabilities.asksFirst)("is refused a turn in which it would have to ask before every act", async () => {
    await using t = await open([MAKE, DONE], { isUnattended: false, settings: { approvalPolicy: "untrusted" } });
    const refused = { code: "runner.unsupported", details: { ability: "asksFirst" } };
    await expect(t.start("make a file")).rejects.toMatchObject(refused);
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
  });

  test("asks the hooks at the points of its turn", async () => {
    const points: HookEvent[] = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
    await using t = await open([DONE], { hooks: points.map((event) => ({ event, command: "true" })) });
    const turn = await t.start("say something");
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    expect(ofType(await t.events(turn.threadId), "hook.ran").map(({ event }) => event)).toEqual(points);
  });

  test.runIf(capabilities.requests)("ends with the limit of its turn", async () => {
    await using t = await open([MAKE, DONE], { settings: { limits: { maxRequests: 1 } } });
    const turn = await t.start("make a file");
    const failure = { code: "limit.reached", details: { limit: "turns", allowed: 1, used: 1 } };
    expect((await turn.done).body).toMatchObject({ status: "failed", failure });
    const events = await t.events(turn.threadId);
    expectClosed(events);
    expect(ofType(events, "model.requested")).toHaveLength(1);
  });
}

/** Of a runner whose calls go through dispatch. */
function promisesOfCalls(open: Open): void {
  test("asks the hooks around its calls, and does nothing that one refuses", async () => {
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
}

/** Of a runner whose agent is another program. */
function promisesOfOutsideAgents({ name, capabilities }: RunnerSubject, open: Open): void {
  test("says which program it was, its conversation and its end, and goes on with it in the next turn", async () => {
    await using t = await open([DONE]);
    const first = await t.start("say something");
    expect((await first.done).body).toMatchObject({ status: "completed", native: { reason: expect.any(String) } });
    const second = await t.start("and again", { thread: first.threadId });
    expect((await second.done).body).toMatchObject({ status: "completed" });
    const events = await t.events(first.threadId);
    const connected = ofType(events, "agent.connected");
    expect(connected.map(({ runner, origin }) => [runner, origin])).toEqual([
      [name, "new"],
      [name, "resumed"],
    ]);
    expect(new Set(connected.map(({ handle }) => handle)).size).toBe(1);
    expect(ofType(events, "agent.ended").map(({ end }) => end)).toEqual(["stopped", "stopped"]);
    const messages = ofType(events, "item.completed").filter(({ item }) => item.type === "agentMessage");
    expect(messages.map(({ item }) => item)).toMatchObject([{ text: "done" }, { text: "done" }]);
    const [started] = ofType(events, "agent.started");
    expect(existsSync(join(t.home, started?.transcript ?? ""))).toBe(true);
  });

  test.runIf(capabilities.asksFirst)("does nothing that a user declines, and says so", async () => {
    await using t = await open([MAKE, DONE], { isUnattended: false, settings: { approvalPolicy: "untrusted" } });
    const turn = await t.start("make a file");
    const { approvalId } = await t.next(turn.threadId, "approval.requested");
    await t.heddle.as("user:owner").answer({ threadId: turn.threadId, approvalId, decision: "decline" });
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    const events = await t.events(turn.threadId);
    expectClosed(events);
    expect(commandEnds(events)).toMatchObject([{ item: { status: "declined" } }]);
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
  });

  test("S8: cannot write where its envelope does not permit it, whatever it allows itself", async () => {
    await using t = await open([MAKE, DONE], { settings: { sandboxMode: "read-only" } });
    const turn = await t.start("make a file");
    expect((await turn.done).body).toMatchObject({ status: "completed" });
    expectClosed(await t.events(turn.threadId));
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(false);
  });
}

async function commandBegins(t: TestHeddle, threadId: string): Promise<void> {
  const signal = AbortSignal.timeout(INTERRUPT_MS * 10);
  for await (const { body } of t.heddle.journal.tail({ stream: threadId, after: 0, signal }))
    if (body.type === "item.started" && body.item.type === "commandExecution") return;
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
