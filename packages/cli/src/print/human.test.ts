import type { EventBody, Item, ItemDelta, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { createHumanPrinter } from "./human.ts";
import { itemTail, resultLine } from "./items.ts";
import { toLine } from "./jsonl.ts";
import type { Output } from "./output.ts";
import type { Printer } from "./output.ts";
import { duration, money, styleFor } from "./style.ts";

const TURN = "turn-1";

interface Screen {
  readonly printer: Printer;
  readonly text: () => string;
  readonly fallBehind: () => void;
}

function openScreen(): Screen {
  let text = "";
  let isBehind = false;
  const err: Output = {
    isTerminal: true,
    isClosed: false,
    get isBehind() {
      return isBehind;
    },
    async write(more) {
      text += more;
    },
  };
  return {
    printer: createHumanPrinter({ err, style: styleFor("never", true, {}), version: "1.2.3", workspace: "/w" }),
    text: () => text,
    fallBehind: () => {
      isBehind = true;
    },
  };
}

let version = 0;
function stored(body: EventBody): StoredEvent {
  version += 1;
  return {
    position: version,
    stream: "thread-1",
    version,
    id: `evt_${version}`,
    at: 0,
    author: "system",
    body,
    hash: "",
  };
}
const started = (item: Item): StoredEvent => stored({ type: "item.started", v: 1, turnId: TURN, item });
const completed = (item: Item): StoredEvent => stored({ type: "item.completed", v: 1, turnId: TURN, item });
const delta = (itemId: string, text: string, channel: ItemDelta["channel"] = "text"): ItemDelta => ({
  threadId: "thread-1",
  turnId: TURN,
  itemId,
  channel,
  delta: text,
});
const message = (text: string): Item => ({ type: "agentMessage", id: "m", text });
const command = (change: Partial<Extract<Item, { type: "commandExecution" }>>): Item => ({
  type: "commandExecution",
  id: "c",
  callId: "call",
  command: "make",
  cwd: "/w",
  status: "inProgress",
  output: "",
  ...change,
});

test("deltas and the completed text together show a message exactly once", async () => {
  const { printer, text } = openScreen();
  await printer.event(started(message("")));
  printer.delta(delta("m", "Hello, "));
  printer.delta(delta("m", "wor"));
  await printer.event(completed(message("Hello, world.")));
  expect(text().trim()).toBe("| Hello, world.");
});

test("deltas that arrive before the stored start of their item wait for it", async () => {
  const { printer, text } = openScreen();
  printer.delta(delta("c", "one\n", "output"));
  await printer.event(started(command({})));
  printer.delta(delta("c", "two\n", "output"));
  await printer.event(completed(command({ status: "completed", output: "one\ntwo\n", exitCode: 0, durationMs: 1500 })));
  expect(text()).toBe("$ make\n| one\n| two\n  exit 0 in 1.5 s\n");
});

test("a command that ends behind other items is named again", async () => {
  const { printer, text } = openScreen();
  await printer.event(started(command({})));
  printer.delta(delta("c", "one\n", "output"));
  await printer.event(started(message("")));
  await printer.event(completed(message("Waiting.")));
  await printer.event(completed(command({ status: "completed", output: "one\ntwo\n", exitCode: 0, durationMs: 1500 })));
  expect(text()).toBe("$ make\n| one\n\n| Waiting.\n$ make\n| two\n  exit 0 in 1.5 s\n");
});

test("a reader that falls behind gets the rest with the completed item, nothing twice", async () => {
  const { printer, text, fallBehind } = openScreen();
  await printer.event(started(message("")));
  printer.delta(delta("m", "Hello"));
  fallBehind();
  printer.delta(delta("m", ", wor"));
  await printer.event(completed(message("Hello, world.")));
  expect(text().trim()).toBe("| Hello, world.");
});

test("output of one command is shown up to a bound", async () => {
  const { printer, text } = openScreen();
  await printer.event(started(command({})));
  for (let i = 0; i < 1000; i += 1) printer.delta(delta("c", "x".repeat(1000), "output"));
  await printer.event(completed(command({ status: "completed", output: "x".repeat(64_000), exitCode: 0 })));
  expect(text().length).toBeGreaterThan(15_000);
  expect(text().length).toBeLessThan(17_000);
});

test("what comes from outside cannot steer the terminal", async () => {
  const { printer, text } = openScreen();
  await printer.event(started(command({ command: "echo \u001b[2J" })));
  printer.delta(delta("c", "\u001b]0;t\u0007\u202e\n", "output"));
  await printer.event(completed(command({ command: "echo", status: "declined", output: "", error: "no\u009b31m" })));
  expect(text()).toBe("$ echo \\x1b[2J\n| \\x1b]0;t\\x07\\u{202e}\n  declined: no\\x9b31m\n");
});

test("a patch is shown as a short diff, a refused one with its reason", async () => {
  const { printer, text } = openScreen();
  const diff = ["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new", ...Array.from({ length: 60 }, () => " same")].join(
    "\n",
  );
  const change = { path: "/w/x", kind: "update" as const, diff };
  await printer.event(completed({ type: "fileChange", id: "f", callId: "c", status: "completed", changes: [change] }));
  await printer.event(
    completed({
      type: "fileChange",
      id: "g",
      callId: "c",
      status: "declined",
      changes: [],
      error: "outside the folder",
    }),
  );
  expect(text()).toMatch(/^changed \/w\/x\n\| @@ -1 \+1 @@\n\| -old\n\| \+new\n/);
  expect(text()).toContain("… 23 more lines");
  expect(text()).toMatch(/declined: outside the folder\n$/);
});

test("the end says result, time, tokens, cost, and how to look at the record", async () => {
  const { printer, text } = openScreen();
  await printer.event(
    stored({
      type: "turn.completed",
      v: 1,
      turnId: TURN,
      status: "failed",
      failure: { code: "provider.cut", message: "the stream broke" },
      usage: {
        inputTokens: 200,
        cachedInputTokens: 80,
        cacheWriteInputTokens: 0,
        outputTokens: 40,
        reasoningOutputTokens: 0,
      },
      durationMs: 61_400,
    }),
  );
  expect(text()).toBe(
    "=#= failed: the stream broke\ntokens used\n160\n1 min 1 s · 200 tokens in (80 cached), 40 out · cost unknown\nrecord: heddle threads show thread-1\nresume: heddle exec resume thread-1\n",
  );
});

test("14: a turn that failed before a model answered has no figures of zero", async () => {
  const { printer, text } = openScreen();
  const usage = {
    inputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteInputTokens: 0,
    outputTokens: 0,
    reasoningOutputTokens: 0,
  };
  const failure = { code: "auth.invalid", message: "the key was refused" } as const;
  await printer.event(
    stored({ type: "turn.completed", v: 1, turnId: TURN, status: "failed", failure, usage, durationMs: 300 }),
  );
  expect(text()).toBe(
    "=#= failed: the key was refused\n300 ms\nrecord: heddle threads show thread-1\nresume: heddle exec resume thread-1\n",
  );
});

test("figures read like figures", () => {
  expect([duration(12.4), duration(1234), duration(119_600)]).toEqual(["12 ms", "1.2 s", "2 min"]);
  expect([money(undefined), money(0), money(0.00123), money(1.5)]).toEqual([
    "cost unknown",
    "$0.00",
    "$0.00123",
    "$1.50",
  ]);
});

test("14: what a turn did is not shown in the colour of what checks have verified", async () => {
  const style = styleFor("always", true, {});
  const change = { path: "a", kind: "update", diff: "+new\n-old" } as const;
  const lines = [
    resultLine("completed", "", style),
    ...itemTail({ type: "fileChange", id: "i", callId: "c", status: "completed", changes: [change] }, style),
  ];
  expect(lines.join("\n")).toContain("+new");
  expect(lines.join("\n")).not.toContain("\u001b[32m");
  expect(style.verified("x")).toBe("\u001b[32mx\u001b[0m");
});

test("colour is on only where it was asked for or is seen", () => {
  expect(styleFor("always", false, {}).red("x")).toBe("\u001b[31mx\u001b[0m");
  expect(styleFor("auto", false, {}).red("x")).toBe("x");
  expect(styleFor("auto", true, { NO_COLOR: "1" }).red("x")).toBe("x");
});

test("a JSON line is one line for every reader and the same value", () => {
  const value = { text: "a\u2028b\u2029c\u0085d\u202e\n" };
  const line = toLine(value);
  expect(line.slice(0, -1)).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(line)).toEqual(value);
});
