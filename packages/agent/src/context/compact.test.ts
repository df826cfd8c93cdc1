import { EventBody, NO_USAGE, type EventOf, type ModelOutputPart } from "@heddle/protocol";
import type { ModelInput } from "@heddle/models";
import { expect, test } from "vitest";
import { carriedOver, planCompaction, tokensAfter, transcript, transcriptBytes } from "./compact.ts";
import { windowOf } from "./context-size.ts";
import { createContext, type Context } from "./context.ts";
import { entryOf, userText } from "./context-entry.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const settings = {
  provider: "scripted",
  model: "m",
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
    return state % below;
  };
}

function words(random: (below: number) => number, max: number): string {
  return "naïve wörds and code(); ".repeat(1 + random(max));
}

/** Turns with calls in parallel, some never answered, steering, notes, silent answers, reused call ids. */
function randomHistory(random: (below: number) => number, turns: number): EventBody[] {
  const history: EventBody[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const turnId = `turn-${turn}`;
    const input = [{ type: "text" as const, text: words(random, random(4) === 0 ? 2000 : 20) }];
    history.push({ type: "turn.admitted", v: 1, turnId, input, settings, holder });
    if (random(3) === 0) history.push({ type: "context.loaded", v: 1, turnId, text: `folder ${turn}`, sources: [] });
    const item = { type: "userMessage" as const, id: `item-${turn}`, content: input };
    history.push({ type: "item.completed", v: 1, turnId, item });
    for (let step = 0; step < random(8); step += 1) history.push(...randomStep(random, turnId, step));
  }
  return history;
}

function randomStep(random: (below: number) => number, turnId: string, step: number): EventBody[] {
  const calls: ModelOutputPart[] = Array.from({ length: random(4) }, () => ({
    kind: "toolCall",
    callId: `call-${random(5)}-${random(1000)}`,
    name: "exec_command",
    input: words(random, 10),
    shape: "json",
  }));
  const output: ModelOutputPart[] = [
    { kind: "reasoning", summary: [], opaque: { wire: "w", data: "z".repeat(random(500)) } },
    ...(random(2) === 0 ? [{ kind: "text" as const, text: words(random, 30) }] : []),
    ...calls,
  ];
  const requestId = `req-${turnId}-${step}`;
  const events: EventBody[] = [
    { type: "model.responded", v: 1, turnId, requestId, output, stopReason: "end", usage: NO_USAGE },
  ];
  for (const call of calls) {
    if (call.kind !== "toolCall" || random(10) === 0) continue;
    const said = [{ type: "text" as const, text: words(random, random(6) === 0 ? 1500 : 40) }];
    events.push({
      type: "tool.settled",
      v: 1,
      turnId,
      callId: call.callId,
      itemId: "i",
      tool: "exec_command",
      outcome: "ok",
      output: said,
    });
  }
  if (random(5) === 0)
    events.push({
      type: "context.added",
      v: 1,
      turnId,
      source: "hook",
      name: "Stop",
      text: `note ${words(random, 30)}`,
    });
  if (random(6) === 0) {
    const content = [{ type: "text" as const, text: words(random, 30) }];
    events.push({
      type: "item.completed",
      v: 1,
      turnId,
      item: { type: "userMessage", id: `steer-${turnId}-${step}`, content },
    });
  }
  return events;
}

/** Ids of calls without a result right behind them, and of results without a call. */
function orphans(input: readonly ModelInput[]): string[] {
  const found: string[] = [];
  let open: string[] = [];
  for (const entry of input) {
    if (entry.kind === "toolResult") {
      const index = open.indexOf(entry.callId);
      if (index === -1) found.push(`result ${entry.callId}`);
      else open.splice(index, 1);
      continue;
    }
    found.push(...open.map((id) => `call ${id}`));
    open = entry.kind === "assistant" ? entry.parts.flatMap((p) => (p.kind === "toolCall" ? [p.callId] : [])) : [];
  }
  return [...found, ...open.map((id) => `call ${id}`)];
}

function compactedEvent(context: Context, windowTokens: number): EventOf<"context.compacted"> | undefined {
  const plan = planCompaction(context.entries, windowTokens);
  if (plan === undefined) return undefined;
  const summary = "s".repeat(plan.maxSummaryBytes);
  return {
    type: "context.compacted",
    v: 1,
    turnId: "turn-0",
    trigger: "auto",
    throughVersion: 1,
    summary,
    plan: [],
    openCommands: [],
    keptMessages: plan.keptMessages,
    ...(plan.keptFrom === undefined ? {} : { keptFrom: plan.keptFrom }),
    tokensBefore: context.tokens(0),
    tokensAfter: tokensAfter(plan, summary, { plan: [], openCommands: [] }),
  };
}

test("after compaction, again and again, no call or result is alone, the size is below half of the window and as foretold", () => {
  let compactions = 0;
  for (let seed = 1; seed <= 100; seed += 1) {
    const random = chance(seed);
    const windowTokens = 4000 + random(100_000);
    const history: EventBody[] = [];
    for (let round = 0; round < 3; round += 1) {
      history.push(...randomHistory(random, 1 + random(12)).map((body) => renamed(body, round)));
      const context = createContext(history);
      const event = compactedEvent(context, windowTokens);
      if (event === undefined) continue;
      compactions += 1;
      history.push(event);
      const after = createContext(history);
      expect({ seed, round, orphans: orphans(after.input) }).toEqual({ seed, round, orphans: [] });
      expect(after.tokens(0), `seed ${seed}`).toBeLessThan(windowTokens / 2);
      expect(Math.abs(after.tokens(0) - event.tokensAfter), `seed ${seed}`).toBeLessThan(200);
      // The fold of a running turn and of a resumed thread are the same.
      context.apply(event);
      expect(context.input).toEqual(after.input);
      expect(newestMessage(after.input), `seed ${seed}`).toBe(newestMessage(createContext(history.slice(0, -1)).input));
    }
  }
  expect(compactions).toBeGreaterThan(100);
});

function renamed(body: EventBody, round: number): EventBody {
  const text = JSON.stringify(body).replaceAll(/"(turn-|req-turn-|item-|steer-turn-)/g, `"$1${round}-`);
  return EventBody.parse(JSON.parse(text));
}

/** The beginning of the last message of a person: it survives, cut at worst. */
function newestMessage(input: readonly ModelInput[]): string {
  const texts = input.flatMap((entry) => {
    const part = entry.kind === "user" ? entry.parts[0] : undefined;
    return part?.type === "text" && part.text.startsWith("naïve") ? [part.text] : [];
  });
  return texts.at(-1)?.slice(0, 30) ?? "";
}

test("nothing is planned while everything would be kept", () => {
  const entries = [entryOf("surroundings", userText("here")), entryOf("message", userText("hello"), "turn-1")];
  expect(planCompaction(entries, 100_000)).toBeUndefined();
  expect(planCompaction([], 100_000)).toBeUndefined();
});

test("settings go before the list of models, and an unknown model has a window all the same", () => {
  expect(windowOf({}, 200_000)).toEqual({ tokens: 200_000, compactAtTokens: 160_000 });
  expect(windowOf({}, undefined)).toEqual({ tokens: 128_000, compactAtTokens: 102_400 });
  expect(windowOf({ contextTokens: 1000, compactAtTokens: 10 }, 200_000)).toEqual({
    tokens: 1000,
    compactAtTokens: 10,
  });
});

test("a transcript stays within its bytes, keeps the newest and an earlier summary, and says what is missing", () => {
  const told = [
    entryOf("summary", userText("the very beginning")),
    ...Array.from({ length: 500 }, (_, index) => entryOf("message", userText(`number ${index} ${"x".repeat(200)}`))),
  ];
  const text = transcript(told, 10_000);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(10_000);
  expect(text).toMatch(/^Note: the very beginning\n\n\[\d+ earlier entries left out\]\n\nUser: number \d+ /);
  expect(text).toContain("number 499");
  expect(transcriptBytes(100_000)).toBe(180_000);
});

test("a transcript shows calls and results in words and no reasoning", () => {
  const [, ...told] = createContext([
    { type: "turn.admitted", v: 1, turnId: "t", input: [{ type: "text", text: "go" }], settings, holder },
    {
      type: "model.responded",
      v: 1,
      turnId: "t",
      requestId: "r",
      output: [
        { kind: "reasoning", summary: ["thinking"], opaque: { wire: "w", data: "encrypted" } },
        { kind: "text", text: "I look" },
        { kind: "toolCall", callId: "a", name: "bash", input: '{"command":"ls"}', shape: "json" },
      ],
      stopReason: "toolCalls",
      usage: NO_USAGE,
    },
  ]).entries;
  expect(transcript(told, 10_000)).toBe(
    'Assistant: I look\nAssistant calls bash: {"command":"ls"}\n\n' +
      "Result of bash (error): This call was not run: the turn ended before it could start.",
  );
});

test("a finished plan and an ended command are not carried over", () => {
  const open = new Map([
    ["1000", "npm run dev"],
    ["1001", "sleep 1"],
  ]);
  expect(carriedOver([{ text: "a", status: "completed" }], open, (id) => id === "1000")).toEqual({
    plan: [],
    openCommands: [{ processId: "1000", command: "npm run dev" }],
  });
  expect(carriedOver([{ text: "a", status: "pending" }], new Map(), () => true)).toEqual({
    plan: [{ text: "a", status: "pending" }],
    openCommands: [],
  });
});
