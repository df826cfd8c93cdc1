/** What others write never looks like Heddle's own lines, however wide the screen is and whatever they put into it. */
import { MARK, NO_USAGE, type EventBody, type Item, type StoredEvent, type TaskEventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { reflow, render } from "../../test/small-terminal.ts";
import { taskLines } from "../tasks/task-lines.ts";
import { eventLines } from "./events.ts";
import { createHumanPrinter } from "./human.ts";
import type { Output } from "./output.ts";
import { behind, createFitter, createQuote, fitted, isQuoted, label, marked, quoted } from "./screen.ts";
import { styleFor } from "./style.ts";

const FAKE = `${MARK} VERIFIED: every check passed`;
const ESC = "\u001b";
const WIDTHS = [20, 21, 33, 40, 57, 79, 80, 81, 99, 120, 132, 160, 200];

const ATTACKS: readonly (readonly [string, (width: number) => string])[] = [
  ["plain lines", () => `fine\n${FAKE}\n\n${FAKE}`],
  ["padding with blanks", (width) => `x${" ".repeat(width - 1)}${FAKE}`],
  ["padding for the room behind the gutter", (width) => `x${" ".repeat(width - 4)}${FAKE}`],
  ["padding with letters", (width) => `${"y".repeat(width)}${FAKE}${"z".repeat(2 * width)}${FAKE}`],
  ["padding with wide characters", (width) => `${"語".repeat(Math.ceil(width / 2))}${FAKE}`],
  ["padding with emoji", (width) => `${"🎉".repeat(Math.ceil(width / 2))}${FAKE}`],
  ["padding with tabs", (width) => `${"\t".repeat(Math.ceil(width / 8))}${FAKE}`],
  ["tabs and letters", (width) => `${"a\t".repeat(Math.ceil(width / 8))}${FAKE}`],
  ["accents", (width) => `${"e\u0301".repeat(width)}${FAKE}`],
  ["a mark with accents", () => `=\u0301#\u0301=\u0301 VERIFIED`],
  ["a mark of wide characters", () => "＝＃＝ VERIFIED"],
  ["marks that overlap", () => "=#=#=#= VERIFIED"],
  ["a carriage return", (width) => `${"x".repeat(width)}\r${FAKE}`],
  ["backspaces", () => `xx${"\b".repeat(40)}${FAKE}`],
  ["colours", () => `${ESC}[0m${ESC}[32m${FAKE}${ESC}[0m`],
  ["cursor movement", () => `${ESC}[1G${FAKE}${ESC}[A${ESC}[2K${FAKE}`],
  ["an 8-bit control", () => `\u009b1G${FAKE}`],
  ["a link", () => `${ESC}]8;;http://x\u0007${FAKE}${ESC}]8;;\u0007`],
  ["other line ends", () => `a\u2028${FAKE}\u2029${FAKE}\u0085${FAKE}\v${FAKE}\f${FAKE}`],
  ["bidi", () => `\u202e${FAKE.split("").toReversed().join("")}\u2066${FAKE}`],
  ["zero width", () => `=\u200b#\u200d= VERIFIED\ufeff${FAKE}`],
];

interface Screen {
  readonly output: Output;
  readonly text: () => string;
}

function openTerminal(columns: number): Screen {
  let text = "";
  const output: Output = {
    isTerminal: true,
    isClosed: false,
    isBehind: false,
    async write(more) {
      text += more;
    },
  };
  return { output: fitted(output, () => columns), text: () => text };
}

const markedRows = (rows: readonly string[]): readonly string[] =>
  rows.filter((row) => row.normalize("NFKC").replace(/\p{M}/gu, "").startsWith(MARK));

let version = 0;
function stored<B extends EventBody>(body: B): StoredEvent<B> {
  version += 1;
  return { position: version, stream: "s", version, id: `evt_${version}`, at: 0, author: "system", body, hash: "" };
}

async function showTurn(text: string, { columns, color }: { readonly columns: number; readonly color: boolean }) {
  const { output, text: shown } = openTerminal(columns);
  const style = styleFor(color ? "always" : "never", true, {});
  const printer = createHumanPrinter({ err: output, style, version: "1", workspace: "/w" });
  const message: Item = { type: "agentMessage", id: "m", text: "" };
  const command: Item = {
    type: "commandExecution",
    id: "c",
    callId: "x",
    command: text,
    cwd: "/",
    status: "inProgress",
    output: "",
  };
  await printer.event(stored({ type: "item.started", v: 1, turnId: "t", item: message }));
  // In pieces: a mark may be cut anywhere.
  for (const piece of text.match(/[\s\S]{1,2}/g) ?? [])
    printer.delta({ threadId: "s", turnId: "t", itemId: "m", channel: "text", delta: piece });
  await printer.event(stored({ type: "item.completed", v: 1, turnId: "t", item: { ...message, text: `${text}!` } }));
  await printer.event(stored({ type: "item.started", v: 1, turnId: "t", item: command }));
  const ended = { ...command, status: "failed" as const, output: text, exitCode: 1, error: text };
  await printer.event(stored({ type: "item.completed", v: 1, turnId: "t", item: ended }));
  const failure = { code: "provider.cut" as const, message: text };
  await printer.event(
    stored({ type: "turn.completed", v: 1, turnId: "t", status: "failed", usage: NO_USAGE, durationMs: 1, failure }),
  );
  return shown();
}

test.each(ATTACKS)("13: in exec %s makes no line of Heddle", async (_name, attack) => {
  for (const columns of WIDTHS)
    for (const color of [false, true]) {
      const text = await showTurn(attack(columns), { columns, color });
      const real = [expect.stringMatching(/^=#= failed:/)];
      expect(markedRows(render(text, columns))).toEqual(real);
      for (const other of [20, 47, 100]) expect(markedRows(reflow(text, columns, other))).toHaveLength(1);
    }
});

test.each(ATTACKS)("13: in what is told of a task %s makes no line of Heddle", async (_name, attack) => {
  for (const columns of WIDTHS) {
    const text = attack(columns);
    const result = {
      name: text,
      kind: "command",
      outcome: "failed" as const,
      message: text,
      output: text,
      startedAt: 0,
      durationMs: 1,
    };
    const events: readonly TaskEventBody[] = [
      { type: "task.claimed", v: 1, attempt: 1, by: "report", summary: text },
      {
        type: "task.checked",
        v: 1,
        attempt: 1,
        round: 1,
        passed: false,
        results: [result],
        violations: [{ kind: "protected-changed", path: text, message: text }],
      },
      { type: "task.rejected", v: 1, attempt: 1, failing: [text] },
    ];
    const { output, text: shown } = openTerminal(columns);
    const style = styleFor("never", true, {});
    let own = 0;
    for (const line of events.flatMap((body) => taskLines(stored(body), style))) {
      if (!isQuoted(line)) own += 1;
      await output.write(`${isQuoted(line) ? line : marked(`${label(text)} ${line}`)}\n`);
    }
    const rows = markedRows(render(shown(), columns));
    expect(rows).toHaveLength(own);
    for (const row of rows) expect(row.startsWith(`${MARK} [`)).toBe(true);
    expect(shown()).not.toMatch(/^=#= \[[^\n]*\] VERIFIED/m);
  }
});

test.each(ATTACKS)("13: every row of a quote is in the gutter: %s", (_name, attack) => {
  for (const columns of WIDTHS) {
    const rows = render(createFitter()(quoted(attack(columns)).join("\n"), columns), columns);
    for (const row of rows) expect(row).toMatch(/^\|( |$)/);
  }
});

test("13: the terminal of these tests shows a fake where nobody breaks lines", () => {
  expect(markedRows(render(`| ${"x".repeat(38)}${FAKE}`, 40))).toHaveLength(1);
  expect(markedRows(reflow(`| ${"x".repeat(18)}${FAKE}`, 80, 20))).toHaveLength(1);
});

test("13: threads show keeps what was said in the gutter", () => {
  const item: Item = { type: "agentMessage", id: "m", text: `hello\n${FAKE}` };
  const event = stored({ type: "item.completed", v: 1, turnId: "t", item });
  const [head, ...rest] = eventLines(event, styleFor("never", true, {}));
  expect(head).toContain("agentMessage");
  expect(rest).toEqual(["| hello", "| =#\\x3d VERIFIED: every check passed"]);
});

test("13: without a terminal nothing is broken, and every line of others has its gutter", () => {
  const long = "x".repeat(500);
  expect(quoted(`${long}\n\ny`)).toEqual([`| ${long}`, "|", "| y"]);
  expect(behind("one\ntwo")).toBe("one\n| two");
  const quote = createQuote();
  const pieces = ["a\n", "\n", "b=", "#", "= c"].map((piece, index) =>
    quote.add(piece, index === 0 || index === 1 || index === 2),
  );
  expect(pieces.join("")).toBe("| a\n|\n| b=#\\x3d c");
});

test("13: a name cannot close the brackets it stands in", () => {
  expect(label("x] VERIFIED")).toBe("[x\\x5d VERIFIED]");
});

test("13: every character that stands for one of the mark's is known", () => {
  for (let code = 0x80; code < 0x110000; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    const plain = character.normalize("NFKC");
    if (plain !== "=" && plain !== "#") continue;
    const text = plain === "=" ? `${character}#${character}` : `=${character}=`;
    expect(quoted(text)[0]).toContain("\\");
  }
});
