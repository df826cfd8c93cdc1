import { expect, test } from "vitest";
import { z } from "zod";
import { invalidParams, retryError, turnError } from "./errors.ts";

function said(schema: z.ZodType, value: unknown): string {
  const { error } = schema.safeParse(value, { reportInput: true });
  return error === undefined ? "nothing" : invalidParams(error.issues);
}

test("a kind nobody knows is answered with those that are known", () => {
  const Kinds = z.discriminatedUnion("type", [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("image") }),
  ]);
  expect(said(z.object({ input: z.array(Kinds) }), { input: [{ type: "smell" }] })).toBe(
    "unknown variant `smell`, expected `text` or `image`",
  );
  expect(said(Kinds, { type: { toString: 1 } })).toBe("invalid type: map, expected a string");
  expect(said(z.object({ limit: z.int().nonnegative() }), { limit: -1 })).toBe(
    "invalid value: integer `-1`, expected u32",
  );
  expect(said(z.object({ id: z.string().min(1).max(3) }), { id: "" })).toBe(
    "invalid value for `id`: it is shorter than 1",
  );
  expect(said(z.object({ id: z.string().max(3) }), { id: "long" })).toBe("invalid value for `id`: it is longer than 3");
  expect(said(z.object({ limit: z.int() }), { limit: "ten" })).toBe('invalid type: string "ten", expected u32');
});

test("a server that broke is told from one that is busy", () => {
  const failure = { code: "provider.overloaded", message: "no" };
  expect(turnError({ ...failure, details: { status: 500 } }).codexErrorInfo).toBe("internalServerError");
  expect(turnError({ ...failure, details: { status: 503 } }).codexErrorInfo).toBe("serverOverloaded");
  expect(turnError(failure).codexErrorInfo).toBe("serverOverloaded");
});

test("an answer that is asked for anew is counted by answers, a request by requests", () => {
  const retried = {
    type: "model.retried",
    v: 1,
    turnId: "t",
    requestId: "r",
    attempt: 2,
    maxAttempts: 4,
    round: 1,
    maxRounds: 2,
    delayMs: 1,
    cause: { code: "provider.cut", message: "cut" },
  } as const;
  expect(retryError({ ...retried, level: "stream" }).message).toBe("Reconnecting... 1/1");
  expect(retryError({ ...retried, level: "request" }).message).toBe("Reconnecting... 2/3");
});
