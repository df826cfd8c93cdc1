import { createStreamRedactor } from "@heddle/journal";
import { expect, test } from "vitest";
import { createRedactedPieces } from "./redacted-pieces.ts";

function played(...pieces: readonly string[]): readonly string[] {
  const redacted = createRedactedPieces(createStreamRedactor());
  return [...pieces.flatMap((piece) => redacted.push(piece)), ...redacted.end()];
}

test.each([
  { pieces: ["he", "llo"] },
  { pieces: ["one-", "done"] },
  { pieces: ["漢", "字", "か", "な"] },
  { pieces: ["This is ", "a s", "k", "etch, ", "eyes", " open"] },
])("what holds no secret comes in the pieces it came in: $pieces", ({ pieces }) => {
  expect(played(...pieces)).toEqual(pieces);
});

test("a secret is redacted as in the whole text, and what follows it is shown", () => {
  const secret = `sk-proj-${"a1B2c3D4".repeat(6)}`;
  const text = played("key: ", secret.slice(0, 9), secret.slice(9), " and", " more").join("");
  expect(text).not.toContain(secret.slice(9, 30));
  expect(text).toMatch(/^key: .* and more$/);
});

test("a long piece is shown as far as it is certain, and its rest later", () => {
  const redacted = createRedactedPieces(createStreamRedactor());
  const line = `${"output ".repeat(20)}s`;
  expect(redacted.push(line)).toEqual([line.slice(0, -1)]);
  expect(redacted.end()).toEqual(["s"]);
});
