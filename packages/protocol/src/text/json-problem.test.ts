import { expect, test } from "vitest";
import { jsonProblem } from "./json-problem.ts";

test.each([
  ["", "column 1: expected a value, found the end"],
  ["hello", 'column 1: expected a value, found "h"'],
  ["{a: 1}", 'column 2: expected a name in double quotes or "}", found "a"'],
  ['{"a" 1}', 'column 6: expected ":", found "1"'],
  ['{"a": 1,}', 'column 9: expected a name in double quotes, found "}"'],
  ["[1, 2", 'column 6: expected "," or "]", found the end'],
  ["[1, ]", 'column 5: expected a value, found "]"'],
  ["[,]", 'column 2: expected a value or "]", found ","'],
  ['{"a": [1}', 'column 9: expected "," or "]", found "}"'],
  ['"a', "column 3: expected a closing double quote, found the end"],
  ['"a\\x"', 'column 3: expected a valid escape, found "\\\\"'],
  ["{} {}", 'column 4: expected the end, found "{"'],
  ["01", 'column 2: expected the end, found "1"'],
  ["nul", 'column 1: expected a value, found "n"'],
  ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: expected "," or "}", found "\\""'],
  ['{"a": "x\ny"}', 'line 1, column 9: expected a closing double quote, found "\\n"'],
  ['["\u{1F600}" \u{1F600}]', 'column 7: expected "," or "]", found "\u{1F600}"'],
])("what is wrong with %j", (text, problem) => {
  expect(() => JSON.parse(text)).toThrow(SyntaxError);
  expect(jsonProblem(text)).toBe(problem);
});

test("every text that the runtime refuses has a fault, and one that it takes ends without one", () => {
  const sound = JSON.stringify({ a: [1, -2.5e3, "x\n\u00e9\\", null, true, {}, []], "": { b: { c: [[[]]] } } });
  let refused = 0;
  for (let at = 0; at <= sound.length; at += 1) {
    for (const text of [sound.slice(0, at), `${sound.slice(0, at)}${sound.slice(at + 1)}`]) {
      try {
        JSON.parse(text);
      } catch {
        refused += 1;
        expect(jsonProblem(text)).toMatch(/^column \d+: expected .+, found .+$/s);
      }
    }
  }
  expect(refused).toBeGreaterThan(100);
  expect(jsonProblem(sound)).toBe(`column ${sound.length + 1}: expected the end, found the end`);
  expect(jsonProblem("[".repeat(200_000))).toBe(`column 200001: expected a value or "]", found the end`);
});
