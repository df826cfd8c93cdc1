import type { Envelope } from "@heddle/protocol";
import { expect, test } from "vitest";
import { createEnvelopeMeters } from "./envelope-meter.ts";

const envelope = (id: string, limits: Envelope["limits"]): Envelope => ({
  id,
  tools: [],
  effects: [],
  writeRoots: [],
  masked: [],
  network: "none",
  sandbox: "required",
  approval: "never",
  ...(limits === undefined ? {} : { limits }),
});
const reached = expect.objectContaining({ code: "envelope.limit-reached" });

test("D14: calls count from entering on, and a check alone counts nothing", () => {
  const meter = createEnvelopeMeters({ calls: 1, bytesWritten: 0, enteredAt: 0 }).of(envelope("a", { calls: 2 }));
  meter.check();
  meter.check();
  meter.begin();
  expect(() => meter.check()).toThrow(reached);
  expect(() => meter.begin()).toThrow(reached);
});

test("D14: the time since it was entered is measured, and no call begins after it", () => {
  let now = 1000;
  const meters = createEnvelopeMeters({ calls: 0, bytesWritten: 0, enteredAt: 900 }, { now: () => now });
  const meter = meters.of(envelope("a", { wallMs: 200 }));
  meter.begin();
  now = 1100;
  expect(() => meter.begin()).toThrow(reached);
});

test("D14: what would exceed the bytes is refused, and what fits still is not", () => {
  const meter = createEnvelopeMeters({ calls: 0, bytesWritten: 5, enteredAt: 0 }).of(
    envelope("a", { bytesWritten: 9 }),
  );
  expect(() => meter.write(5)).toThrow(reached);
  meter.write(4);
  expect(() => meter.write(1)).toThrow(reached);
  meter.write(0);
});

test("another envelope counts from zero, the same one goes on, and one without limits has none", () => {
  const meters = createEnvelopeMeters({ calls: 1, bytesWritten: 0, enteredAt: 0 });
  const one = envelope("a", { calls: 1 });
  expect(() => meters.of(one).begin()).toThrow(reached);
  for (let calls = 0; calls < 100; calls += 1) meters.of(envelope("b", undefined)).begin();
  meters.of(one).begin();
  expect(() => meters.of({ ...one, writeRoots: ["/x"] }).begin()).toThrow(reached);
});

test("what a child thread does counts for its parent too, and what is refused there counts nowhere", () => {
  const parents = createEnvelopeMeters({ calls: 0, bytesWritten: 0, enteredAt: 0 });
  const parent = () => parents.of(envelope("parent", { calls: 3, bytesWritten: 10 }));
  const child = (limits: Envelope["limits"]) =>
    createEnvelopeMeters({ calls: 0, bytesWritten: 0, enteredAt: 0 }, { outer: parent }).of(envelope("child", limits));
  const [one, other] = [child({ calls: 1 }), child(undefined)];
  const grandchild = createEnvelopeMeters({ calls: 0, bytesWritten: 0, enteredAt: 0 }, { outer: () => other }).of(
    envelope("deep", {}),
  );
  one.begin();
  expect(() => one.begin()).toThrow(reached);
  parent().begin();
  grandchild.begin();
  for (const meter of [parent(), other, grandchild]) expect(() => meter.check()).toThrow(/"parent" allows 3 calls/);
  other.write(6);
  expect(() => grandchild.write(5)).toThrow(/"parent" allows 10 bytes/);
  parent().write(4);
  expect(() => other.write(1)).toThrow(reached);
});

test("the time of a parent's envelope holds for its children, whenever they entered theirs", () => {
  let now = 900;
  const options = { now: () => now };
  const parent = createEnvelopeMeters({ calls: 0, bytesWritten: 0, enteredAt: 0 }, options);
  const outer = () => parent.of(envelope("parent", { wallMs: 1000 }));
  const child = createEnvelopeMeters({ calls: 0, bytesWritten: 0, enteredAt: 800 }, { ...options, outer });
  child.of(envelope("child", { wallMs: 1000 })).begin();
  now = 1000;
  expect(() => child.of(envelope("child", { wallMs: 1000 })).begin()).toThrow(/"parent" allows 1000 ms/);
});
