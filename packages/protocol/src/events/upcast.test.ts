import { expect, test } from "vitest";
import { upcast, type Upcasters } from "./upcast.ts";

const created = { type: "thread.created", v: 1, workspace: "/w", origin: "exec" };

test("a body of today's version comes back as it is", () => {
  expect(upcast(created)).toBe(created);
});

test("an old body walks every step up to today's version", () => {
  const steps: Upcasters = {
    "thread.created": {
      [-1]: ({ folder, ...body }) => ({ ...body, v: 0, workspace: folder }),
      0: (body) => ({ ...body, v: 1, origin: "unknown" }),
    },
  };
  expect(upcast({ type: "thread.created", v: -1, folder: "/w" }, steps)).toEqual({
    type: "thread.created",
    v: 1,
    workspace: "/w",
    origin: "unknown",
  });
});

test("a step that changes the type is followed under its new name", () => {
  const steps: Upcasters = { "thread.opened": { 1: (body) => ({ ...body, type: "thread.created" }) } };
  expect(upcast({ ...created, type: "thread.opened" }, steps)).toEqual(created);
});

test("a step that does not advance is a bug, not an endless loop", () => {
  const steps: Upcasters = { "thread.created": { 1: (body) => body } };
  expect(() => upcast(created, steps)).toThrow(TypeError);
});

test.each([
  ["an unknown type", { type: "thread.dreamt", v: 1 }],
  ["a newer version of a known type", { ...created, v: 99 }],
])("%s is refused as written by a newer Heddle", (_name, body) => {
  expect(() => upcast(body)).toThrow(expect.objectContaining({ code: "store.newer" }));
});

test.each([
  ["a version that no step leads on from", { ...created, v: 0 }],
  ["a body without a type", { v: 1 }],
  ["something that is not an object", 7],
])("%s is damage", (_name, body) => {
  expect(() => upcast(body)).toThrow(expect.objectContaining({ code: "store.damaged" }));
});
