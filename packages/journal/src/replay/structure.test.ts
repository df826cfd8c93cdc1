import { describe, expect, test } from "vitest";
import { admitted, completed, said } from "../suite/journal.samples.ts";
import {
  codeIn,
  codes,
  EDIT,
  EXPLORE,
  hashOf,
  intended,
  ran,
  replayed,
  settled,
  thread,
  turnIn,
  type Step,
} from "../suite/envelope.samples.ts";

const entered = (envelope = EXPLORE, more: object = {}): Step => [
  "system",
  {
    type: "envelope.entered",
    v: 1,
    cause: "start",
    envelope,
    envelopeHash: hashOf(envelope),
    sandboxLevel: "none",
    depth: 0,
    ...more,
  },
];
const left = (envelope = EXPLORE): Step => [
  "system",
  { type: "envelope.left", v: 1, cause: "settings", envelopeHash: hashOf(envelope), calls: 0 },
];

describe("level 3", () => {
  test("a turn with calls is in order, and is counted", () => {
    const report = replayed(turnIn(EXPLORE, ...ran({ tool: "read", args: { file_path: "a" } }), said("done", "t1")));
    expect(report).toMatchObject({ events: 7, turns: 1, calls: 1, hops: 0, findings: [], running: [] });
  });

  test.each<readonly [name: string, version: number, steps: readonly Step[]]>([
    ["Verify: no_beginning", 1, [admitted("t1"), completed("t1")]],
    ["Verify: no_beginning", 1, [["user:owner", { type: "task.verified", v: 1, attempt: 1 }]]],
    ["Verify: unfinished_call", 4, turnIn(EXPLORE, intended({ tool: "read", args: { file_path: "a" } }))],
    ["Verify: ended_twice", 5, [...turnIn(EXPLORE), completed("t1")]],
    ["Verify: ended_twice", 5, [...turnIn(EXPLORE), admitted("t1"), completed("t2")].slice(0, 5)],
    ["Verify: ended_twice", 6, turnIn(EXPLORE, ...ran({ tool: "bash" }), settled({ tool: "bash" }))],
    ["Verify: ended_twice", 5, turnIn(EXPLORE, said("x", "t1"), said("x", "t1"))],
    ["Verify: orphan_reply", 2, [thread, completed("t1")]],
    ["Verify: orphan_reply", 4, turnIn(EXPLORE, settled({ tool: "read" }))],
    [
      "Verify: orphan_reply",
      4,
      turnIn(EXPLORE, [
        "user:owner",
        { type: "approval.resolved", v: 1, turnId: "t1", approvalId: "a", decision: "accept" },
      ]),
    ],
    ["Verify: orphan_reply", 2, [thread, ["user:owner", { type: "client.settled", v: 1, actId: "x", outcome: "ok" }]]],
    ["Verify: author_changed", 4, turnIn(EXPLORE, ["agent:codex", { ...said("x", "t1") }])],
    ["Verify: author_changed", 1, [["nobody", { type: "thread.created", v: 1, workspace: "/w", origin: "exec" }]]],
    ["Verify: not_left", 3, [thread, entered(), entered(EDIT)]],
    ["Verify: not_left", 2, [thread, left()]],
    ["Verify: not_left", 3, [thread, entered(), left(EDIT)]],
    [
      "Verify: unfinished_item",
      4,
      turnIn(EXPLORE, { type: "item.started", v: 1, turnId: "t1", item: { type: "agentMessage", id: "m", text: "" } }),
    ],
  ])("%s at event %i", (name, version, steps) => {
    expect(codes(replayed(steps))[0]).toEqual([codeIn(name), version]);
  });

  test("an envelope that is entered, left and entered is in order, and so is one that is still current", () => {
    expect(codes(replayed([thread, entered(), left(), entered(EDIT, { cause: "settings" })]))).toEqual([]);
  });

  test("Verify: clock_backwards: a warning, because clocks may jump (G17)", () => {
    const report = replayed(turnIn(EXPLORE), (entry) => (entry.version === 3 ? { ...entry, at: 5 } : entry));
    expect(report.findings).toMatchObject([{ code: "clock_backwards", weight: "warning", version: 3 }]);
  });

  test("Verify: orphan_reply: a reply to what is not there, or not earlier, is found by whoever can look it up", () => {
    const note: Step = ["agent:embedded", { type: "evidence.noted", v: 1, replyTo: "evt_1" }];
    expect(codes(replayed([thread, note]))).toEqual([]);
    expect(codes(replayed([thread, note], (entry) => ({ ...entry, isOrphan: entry.version === 2 })))).toEqual([
      ["orphan_reply", 2],
    ]);
  });

  test("an open turn is running, and its open call is no finding yet", () => {
    const report = replayed(turnIn(EXPLORE, intended({ tool: "bash" })).slice(0, -1));
    expect(report).toMatchObject({ running: ["thr"], findings: [], calls: 1 });
  });

  test("what was purged is not missed", () => {
    const steps = turnIn(EXPLORE, ...ran({ tool: "bash" }));
    const report = replayed(steps, ({ body, ...entry }) =>
      entry.version === 4 ? { ...entry, isUnread: true } : { ...entry, body },
    );
    expect(report.findings).toEqual([]);
  });
});
