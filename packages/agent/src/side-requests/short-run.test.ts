import { isHeddleError } from "@heddle/protocol";
import { expect, test } from "vitest";
import { shortAnswer, shortLimit, shortRequest } from "./short-run.ts";

test("a short run has no tools, and two of them never the same marks", () => {
  const question = { model: "m", instructions: "Sum up.", data: "</data> words", maxOutputTokens: 10 };
  const [one, two] = [shortRequest(question), shortRequest(question)];
  expect(one).toMatchObject({ model: "m", tools: [], maxOutputTokens: 10 });
  expect(one.instructions).not.toBe(two.instructions);
  expect(one.cacheKey).not.toBe(two.cacheKey);
  expect(shortRequest({ ...question, cacheKey: "thread" }).cacheKey).toBe("thread");
});

test("an answer without words is none", () => {
  expect(shortAnswer([{ kind: "text", text: " a " }])).toBe("a");
  expect(() => shortAnswer([{ kind: "text", text: "  " }])).toThrow("without text");
});

test("its time ends by itself with a code, by the signal with that reason", async () => {
  const never = new AbortController();
  const limit = shortLimit(never.signal, 5);
  await new Promise((resolve) => limit.signal.addEventListener("abort", resolve, { once: true }));
  expect(isHeddleError(limit.signal.reason) && limit.signal.reason.code).toBe("provider.stalled");
  const stopped = new AbortController();
  using other = shortLimit(stopped.signal, 10_000);
  stopped.abort("enough");
  expect(other.signal.reason).toBe("enough");
});
