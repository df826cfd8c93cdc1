import { expect, test } from "vitest";
import { PlanSplitter, type PlanPiece } from "./proposed-plan.ts";

interface Split {
  readonly words: string;
  readonly plans: readonly string[];
}

function split(pieces: readonly string[]): Split {
  const splitter = new PlanSplitter();
  const all: PlanPiece[] = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()];
  let words = "";
  const plans: string[] = [];
  for (const piece of all) {
    if (piece.kind === "begin") plans.push("");
    else if (piece.kind === "plan") plans.push((plans.pop() ?? "a plan that nothing began: ") + piece.text);
    else words += piece.text;
  }
  return { words, plans };
}

/** Each beside what Codex 0.166 makes of it; of several plans it keeps the last. */
const TEXTS: readonly (readonly [text: string, words: string, ...plans: readonly string[]])[] = [
  ["<proposed_plan>\n# Plan\n\n- one\n</proposed_plan>", "", "# Plan\n\n- one\n"],
  ["Before.\n<proposed_plan>\n- one\n</proposed_plan>\nAfter.", "Before.\nAfter.", "- one\n"],
  ["Here <proposed_plan>x</proposed_plan> it is", "Here <proposed_plan>x</proposed_plan> it is"],
  ["Before\n<proposed_plan>\n- one\n", "Before\n", "- one\n"],
  ["A\n<proposed_plan>\nx\n</proposed_plan>\nB\n<proposed_plan>\ny\n</proposed_plan>\nC", "A\nB\nC", "x\n", "y\n"],
  ["A\n  <proposed_plan>\t \nx\n  </proposed_plan>  \nB", "A\nB", "x\n"],
  ["A\r\n<proposed_plan>\r\nx\r\n</proposed_plan>\r\nB", "A\r\nB", "x\r\n"],
  ["<proposed_plan>\n</proposed_plan>", "", ""],
  ["<proposed_plan>", "", ""],
  ["A\n<proposed_plan>\nx\n</proposed_plan> and\nB\n</proposed_plan>\nC", "A\nC", "x\n</proposed_plan> and\nB\n"],
  [
    "A\n</proposed_plan>\nB\n<proposed_plan>\n<proposed_plan>\nx\n</proposed_plan>",
    "A\n</proposed_plan>\nB\n",
    "<proposed_plan>\nx\n",
  ],
  ["<proposed_plan>\nlast line without an end", "", "last line without an end"],
  [
    "  <propos\n<proposed_plan\n<proposed_plan>>\n<<proposed_plan>",
    "  <propos\n<proposed_plan\n<proposed_plan>>\n<<proposed_plan>",
  ],
  [`<proposed_plan>${" ".repeat(300)}\nx`, `<proposed_plan>${" ".repeat(300)}\nx`],
  ["\n\n<proposed_plan>\nx\n</proposed_plan>\n\nAfter", "\n\n\nAfter", "x\n"],
  ["", ""],
];

test.each(TEXTS)("%j", (text, words, ...plans) => {
  expect(split([text])).toEqual({ words, plans });
});

test("wherever a text is cut, into two pieces, three or single characters, it is split the same", () => {
  let cuts = 0;
  for (const [text, words, ...plans] of TEXTS) {
    const whole = { words, plans };
    expect(split(text.split(""))).toEqual(whole);
    for (let one = 0; one <= text.length; one += 1) {
      expect(split([text.slice(0, one), text.slice(one)])).toEqual(whole);
      for (let other = one; other <= text.length && text.length < 100; other += 1) {
        expect(split([text.slice(0, one), text.slice(one, other), text.slice(other)])).toEqual(whole);
        cuts += 1;
      }
    }
  }
  expect(cuts).toBeGreaterThan(1000);
});

test("words that cannot become a tag are passed on at once", () => {
  const splitter = new PlanSplitter();
  expect(splitter.push("Hello")).toEqual([{ kind: "text", text: "Hello" }]);
  expect(splitter.push(" <proposed_plan>")).toEqual([{ kind: "text", text: " <proposed_plan>" }]);
  expect(splitter.push("\n<prop")).toEqual([{ kind: "text", text: "\n" }]);
  expect(splitter.push("er>")).toEqual([{ kind: "text", text: "<proper>" }]);
});
