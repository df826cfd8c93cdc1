/** A long thread is resumed from marks and what came since its last compaction, to the same conversation as from all of it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal, type Journal } from "@heddle/journal";
import {
  inputItemId,
  NO_USAGE,
  type EventBody,
  type InputPart,
  type ModelOutputPart,
  type StoredEvent,
  type Goal,
} from "@heddle/protocol";
import { expect, test } from "vitest";
import { rememberedApprovals } from "../approvals/approvals.ts";
import { clientToolsOf } from "../approvals/client-tools.ts";
import { createContext } from "../context/context.ts";
import { goalOf } from "../context/goal.ts";
import { readGoal } from "./goal.ts";
import { readHistory, readPast } from "./history.ts";
import { isKept, readLastSettings, readPlan } from "./past.ts";
import { readResumed } from "./resumed.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const settings = {
  provider: "scripted",
  sandboxMode: "read-only" as const,
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never" as const,
};

/** A small generator with a seed, so that a failure can be played again. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % below;
  };
}

const text = (words: string): InputPart[] => [{ type: "text", text: words }];
const message = (turnId: string, id: string, words: string): EventBody => ({
  type: "item.completed",
  v: 1,
  turnId,
  item: { type: "userMessage", id, content: text(words) },
});

class Writer {
  readonly #journal: Journal;
  readonly #random: (below: number) => number;
  readonly #said: EventBody[] = [];
  #stream = "";
  #count = 0;

  constructor(journal: Journal, seed: number) {
    this.#journal = journal;
    this.#random = chance(seed);
  }

  async turns(stream: string, turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) await this.#turn(stream);
    await this.stored();
  }

  async openTurn(stream: string): Promise<void> {
    await this.#turn(stream, true);
    await this.stored();
  }

  /** Stored together with the next ones, and before anything is read. */
  async say(stream: string, ...events: EventBody[]): Promise<void> {
    if (stream !== this.#stream) await this.stored();
    this.#stream = stream;
    this.#said.push(...events);
  }

  async stored(): Promise<void> {
    const events = this.#said.splice(0);
    await this.#journal.append({ stream: this.#stream, author: "system", events, durability: "relaxed" });
  }

  async #turn(stream: string, staysOpen = false): Promise<void> {
    const random = this.#random;
    const turnId = this.#name("turn");
    const input = text(`do ${turnId} ${"naïve wörds ".repeat(random(12))}`);
    const admitted: EventBody = {
      type: "turn.admitted",
      v: 1,
      turnId,
      input,
      settings: { ...settings, model: turnId },
      holder,
    };
    await this.say(stream, admitted);
    if (random(5) === 0)
      await this.say(stream, { type: "context.loaded", v: 1, turnId, text: `in ${turnId}`, sources: [] });
    await this.say(stream, message(turnId, inputItemId(turnId), "as admitted"));
    for (let step = random(6); step > 0; step -= 1) await this.#step(stream, turnId);
    if (staysOpen) return;
    const usage = { ...NO_USAGE, inputTokens: 7 };
    await this.say(stream, { type: "turn.completed", v: 1, turnId, status: "completed", usage, durationMs: 1 });
    if (random(25) === 0) await this.#compact(stream, turnId);
    if (random(20) === 0) await this.#revert(stream);
    if (random(30) === 0)
      await this.say(stream, {
        type: "context.injected",
        v: 1,
        entries: [{ kind: "user", parts: text("from outside") }],
      });
    const goal = { objective: `goal ${random(2)}`, status: "active" } as const;
    if (random(40) === 0) await this.say(stream, { type: "thread.goal-changed", v: 1, goal });
  }

  async #step(stream: string, turnId: string): Promise<void> {
    const random = this.#random;
    const [requestId, callId, itemId] = [this.#name("req"), this.#name("call"), this.#name("item")];
    const call: ModelOutputPart = { kind: "toolCall", callId, name: "exec_command", input: "{}", shape: "json" };
    const sealed: ModelOutputPart = { kind: "reasoning", summary: [], opaque: { wire: "w", data: "zz" } };
    const output = [sealed, { kind: "text" as const, text: `answer ${requestId}` }, ...(random(2) === 0 ? [call] : [])];
    const model = { turnId, requestId, v: 1 } as const;
    const usage = random(3) === 0 ? { ...NO_USAGE, inputTokens: random(1000) } : NO_USAGE;
    await this.say(stream, { ...model, type: "model.responded", output, stopReason: "stop", usage });
    const command = {
      type: "commandExecution" as const,
      id: itemId,
      callId,
      command: "ls",
      cwd: "/w",
      status: "inProgress" as const,
      output: "",
    };
    await this.say(stream, { type: "item.started", v: 1, turnId, item: command });
    const settled = {
      turnId,
      callId,
      itemId,
      tool: "exec_command",
      outcome: "ok" as const,
      output: text(`result ${callId}`),
    };
    await this.say(stream, { type: "tool.settled", v: 1, ...settled });
    await this.say(stream, { type: "item.completed", v: 1, turnId, item: { ...command, status: "completed" } });
    if (random(6) === 0) await this.say(stream, message(turnId, this.#name("steer"), "more of it"));
    if (random(30) === 0) await this.#compact(stream, turnId);
    const left = { turnId, provider: "p", model: "m", failure: { code: "x", message: "y" } };
    if (random(60) === 0) await this.say(stream, { type: "context.left-out", v: 1, parts: "sealed", ...left });
    if (random(12) === 0) await this.#approve(stream, turnId);
  }

  async #approve(stream: string, turnId: string): Promise<void> {
    const approvalId = this.#name("approval");
    const question = {
      kind: "command",
      itemId: "i",
      callId: approvalId,
      command: `run ${approvalId}`,
      cwd: "/w",
    } as const;
    await this.say(stream, { type: "approval.requested", v: 1, turnId, approvalId, question } as EventBody);
    const decision = this.#random(2) === 0 ? "acceptForThread" : "accept";
    await this.say(stream, { type: "approval.resolved", v: 1, turnId, approvalId, decision });
  }

  /** Any cut that the conversation allows, and any of the messages before it, some made shorter. */
  async #compact(stream: string, turnId: string): Promise<void> {
    const random = this.#random;
    await this.stored();
    const { entries } = createContext((await readPast(this.#journal, stream)).map(({ body }) => body));
    const named = entries.filter(({ role, name }) => name !== undefined && role !== "result").slice(-12);
    const keptFrom = random(4) === 0 ? undefined : named[random(named.length + 1)]?.name;
    const cut = keptFrom === undefined ? entries.length : entries.findIndex(({ name }) => name === keptFrom);
    const messages = entries.slice(0, cut).flatMap(({ role, name = "" }) => (role === "message" ? [name] : []));
    const chosen = messages
      .filter(() => random(3) === 0)
      .map((name) => ({ name, ...(random(2) === 0 ? { maxBytes: 20 + random(40) } : {}) }));
    const about = { summary: `all before ${turnId}`, plan: [], openCommands: [], tokensBefore: 1, tokensAfter: 1 };
    const kept = { keptMessages: chosen, ...(keptFrom === undefined ? {} : { keptFrom }) };
    await this.say(stream, {
      type: "context.compacted",
      v: 1,
      turnId,
      trigger: "auto",
      throughVersion: 1,
      ...about,
      ...kept,
    });
  }

  async #revert(stream: string): Promise<void> {
    await this.stored();
    const past = await readPast(this.#journal, stream);
    const turns = past.flatMap(({ body }) => (body.type === "turn.admitted" ? [body.turnId] : []));
    const beforeTurnId = turns.at(-1 - this.#random(Math.min(6, turns.length)));
    if (beforeTurnId !== undefined) await this.say(stream, { type: "thread.reverted", v: 1, beforeTurnId });
  }

  #name(kind: string): string {
    this.#count += 1;
    return `${kind}_${this.#count}`;
  }
}

async function expectSame(journal: Journal, threadId: string): Promise<void> {
  const whole = await readPast(journal, threadId);
  const resumed = await readResumed(journal, threadId);
  const contexts = [whole, resumed].map((events) => createContext(events.map(({ body }) => body)));
  const [before, after] = contexts;
  expect(after?.input).toEqual(before?.input);
  expect(after?.tokens(100)).toBe(before?.tokens(100));
  expect(rememberedApprovals(resumed, undefined)).toEqual(rememberedApprovals(whole, undefined));
  expect(clientToolsOf(resumed)).toEqual(clientToolsOf(whole));
  const isSame = ({ status, objective }: Goal): object => ({ status, objective });
  const [goal, goalOfWhole] = [goalOf(resumed), goalOf(whole)];
  expect(goal && isSame(goal)).toEqual(goalOfWhole && isSame(goalOfWhole));
  expect(await readGoal(journal, threadId)).toEqual(goalOf(await readHistory(journal, threadId)));
  const admitted = whole.flatMap(({ body }) => (body.type === "turn.admitted" ? [body] : []));
  expect(await readLastSettings(journal, threadId)).toEqual(admitted.at(-1)?.settings);
  const past = await readPlan(journal, threadId);
  const turns = (await Promise.all(past.parts.map(({ stream }) => journal.threads.turns(stream)))).flat();
  const names = new Set(admitted.map(({ turnId }) => turnId));
  expect(turns.filter((turn) => isKept(past, turn)).map(({ id }) => id)).toEqual(
    turns.map(({ id }) => id).filter((id) => names.has(id)),
  );
}

test.each([1, 2, 5])(
  "14.5: a long thread and its forks are resumed from little, to the same conversation (%i)",
  async (seed) => {
    const folder = mkdtempSync(join(tmpdir(), "heddle-resumed-"));
    try {
      await using journal = await openJournal({ home: join(folder, "home") });
      const writer = new Writer(journal, seed);
      const created = { type: "thread.created", v: 1, workspace: "/w", origin: "test" } as const;
      const tools = [{ name: "t", description: "", parameters: {} }];
      await writer.say("a", created, { type: "thread.tools-declared", v: 1, tools });
      await writer.turns("a", 80);
      await expectSame(journal, "a");
      const forkedFrom = { threadId: "a", version: (await journal.threads.lastTurn("a"))?.endedVersion ?? 1 };
      await writer.turns("a", 15);
      await writer.say("b", { ...created, forkedFrom });
      await writer.turns("b", 20);
      await expectSame(journal, "a");
      await expectSame(journal, "b");
      // What an open turn has done is there whole, to its last event.
      await writer.openTurn("b");
      await expectSame(journal, "b");
      const [whole, resumed] = [await readPast(journal, "b"), await readResumed(journal, "b")];
      const open = (await journal.threads.lastTurn("b"))?.admittedVersion ?? 0;
      const isOpen = ({ stream, version }: StoredEvent): boolean => stream === "b" && version >= open;
      expect(resumed.filter(isOpen)).toEqual(whole.filter(isOpen));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
