import { createHash } from "node:crypto";
import { canonical, type Envelope } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { admitted, completed } from "../suite/journal.samples.ts";
import {
  codeIn,
  codes,
  EDIT,
  EXPLORE,
  hashOf,
  ran,
  replayed,
  started,
  turnIn,
  type Step,
} from "../suite/envelope.samples.ts";

const at = (file_path: string) => ({ file_path });

describe("level 4: hops by name", () => {
  const edge = { to: "edit", by: ["model", "user"], approval: "auto" } as const;
  const FROM: Envelope = { ...EXPLORE, exits: [{ ...edge, by: [...edge.by] }] };
  const facts = { to: "edit", channel: "model", reason: "ready", guards: [] };
  const hop = (
    from: Envelope,
    to: Envelope,
    { by = "agent:embedded", ...more }: Record<string, unknown> = {},
  ): Step[] => [
    [String(by), { type: "envelope.left", v: 1, duringTurn: "t1", cause: "hop", envelopeHash: hashOf(from), calls: 0 }],
    [
      String(by),
      {
        type: "envelope.entered",
        v: 1,
        duringTurn: "t1",
        cause: "hop",
        envelope: to,
        envelopeHash: hashOf(to),
        sandboxLevel: "none",
        depth: 1,
        hop: facts,
        ...more,
      },
    ],
  ];
  const enter = (envelope: Envelope, more: object = {}): Step => [
    "system",
    {
      type: "envelope.entered",
      v: 1,
      duringTurn: "t1",
      cause: "start",
      envelope,
      envelopeHash: hashOf(envelope),
      sandboxLevel: "none",
      depth: 0,
      ...more,
    },
  ];
  const edited = ran({ tool: "edit", args: at("a") });

  test("a hop by its edge leads into the next envelope", () => {
    expect(replayed(turnIn(FROM, enter(FROM), ...hop(FROM, EDIT), ...edited))).toMatchObject({ hops: 1, findings: [] });
  });

  test.each<readonly [name: string, what: string, steps: readonly Step[]]>([
    ["Verify: hop_without_edge", "without an edge", [enter(EXPLORE), ...hop(EXPLORE, EDIT)]],
    [
      "Verify: hop_without_edge",
      "under another name",
      [enter(FROM), ...hop(FROM, EDIT, { hop: { ...facts, to: "plan" } })],
    ],
    [
      "Verify: hop_without_authority",
      "by a channel that the edge does not have",
      [enter(FROM), ...hop(FROM, EDIT, { hop: { ...facts, channel: "task" } })],
    ],
    [
      "Verify: hop_without_authority",
      "by an agent that says it is the user (H4)",
      [enter(FROM), ...hop(FROM, EDIT, { hop: { ...facts, channel: "user" } })],
    ],
    [
      "Verify: hop_without_authority",
      "that asks, and nobody answered",
      [
        enter({ ...FROM, exits: [{ ...edge, by: ["model"], approval: "ask" }] }),
        ...hop({ ...FROM, exits: [{ ...edge, by: ["model"], approval: "ask" }] }, EDIT),
      ],
    ],
    [
      "Verify: guard_unmet",
      "with a guard that was not met",
      [
        enter({ ...FROM, exits: [{ ...edge, by: ["model"], guards: [{ kind: "outcome" }] }] }),
        ...hop({ ...FROM, exits: [{ ...edge, by: ["model"], guards: [{ kind: "outcome" }] }] }, EDIT, {
          hop: { ...facts, guards: [{ kind: "outcome", isMet: false, found: "none" }] },
        }),
      ],
    ],
    ["Verify: above_ceiling", "above the ceiling", [enter(FROM, { ceiling: FROM }), ...hop(FROM, EDIT)]],
    [
      "Verify: limit_exceeded",
      "more often than a turn allows",
      [enter({ ...FROM, limits: { hopsPerTurn: 0 } }), ...hop({ ...FROM, limits: { hopsPerTurn: 0 } }, EDIT)],
    ],
    ["Verify: hop_without_edge", "back to where it never was", [enter(FROM), ...hop(FROM, EDIT, { cause: "back" })]],
  ])("%s: a hop %s", (name, _what, steps) => {
    const [first] = replayed(turnIn(FROM, ...steps)).findings;
    expect(first?.code).toBe(codeIn(name));
  });

  test("a turn that enters an envelope under a new ceiling is judged by that one", () => {
    const steps = (own: Envelope): readonly Step[] => [
      ...turnIn(FROM, enter(FROM, { ceiling: FROM })),
      admitted("t2"),
      ["system", started("t2", EDIT)],
      [
        "system",
        {
          type: "envelope.left",
          v: 1,
          duringTurn: "t2",
          cause: "settings",
          envelopeHash: hashOf(FROM),
          calls: 0,
        },
      ],
      enter(EDIT, { duringTurn: "t2", cause: "settings", ceiling: own }),
      completed("t2"),
    ];
    expect(codes(replayed(steps(EDIT)))).toEqual([]);
    expect(codes(replayed(steps(FROM)))).toEqual([["above_ceiling", 9]]);
    // Nothing is entered: what the turn starts in is judged by the ceiling that is there.
    const kept = [
      ...turnIn(FROM, enter(FROM, { ceiling: FROM })),
      admitted("t2"),
      started("t2", EDIT),
      completed("t2"),
    ];
    expect(codes(replayed(kept))).toEqual([["above_ceiling", 7]]);
    const talking: Envelope = { ...FROM, tools: [...FROM.tools, "update_plan", "hop"] };
    expect(codes(replayed(turnIn(talking, enter(talking, { ceiling: FROM }))))).toEqual([]);
  });

  test("a model does not go back to what its user has left, unless that is narrower", () => {
    const away = hop(FROM, EDIT, { by: "user:owner", hop: { ...facts, channel: "user" } });
    const narrower = hop(EDIT, FROM, { cause: "back" });
    expect(codes(replayed(turnIn(FROM, enter(FROM), ...away, ...narrower)))).toEqual([]);
    const WIDE: Envelope = { ...EDIT, exits: [{ to: "explore", by: ["user"], approval: "auto" }] };
    const narrowed = hop(WIDE, EXPLORE, { by: "user:owner", hop: { ...facts, to: "explore", channel: "user" } });
    const wider = hop(EXPLORE, WIDE, { cause: "back" });
    expect(codes(replayed(turnIn(WIDE, enter(WIDE), ...narrowed, ...wider)))).toEqual([["hop_without_authority", 8]]);
    const byUser = hop(EXPLORE, WIDE, { cause: "back", by: "user:owner", hop: { ...facts, channel: "user" } });
    expect(codes(replayed(turnIn(WIDE, enter(WIDE), ...narrowed, ...byUser)))).toEqual([]);
  });

  test("back leads to where the thread came from", () => {
    const back = hop(EDIT, FROM, { cause: "back" });
    expect(codes(replayed(turnIn(FROM, enter(FROM), ...hop(FROM, EDIT), ...back)))).toEqual([]);
    expect(codes(replayed(turnIn(FROM, enter(FROM), ...hop(FROM, EDIT), ...back, ...edited)))).toEqual([
      ["tool_outside_envelope", 9],
      ["tool_outside_envelope", 9],
      ["path_outside_envelope", 9],
    ]);
  });

  const GUARDS = [{ kind: "outcome" }] as const;
  const through: Envelope["exits"] = [
    { to: "edit", by: ["model"], approval: "auto", guards: [{ kind: "gate", name: "ready", guards: [...GUARDS] }] },
  ];
  const GATED: Envelope = { ...EXPLORE, exits: through };
  const declared = { name: "ready", guards: [...GUARDS] };
  const met = [{ kind: "outcome", isMet: true, found: "it has the shape" }];
  const proof = (type: "gate.passed" | "gate.refused", more: object = {}): Step => [
    "agent:embedded",
    {
      type,
      v: 1,
      gateId: "gate_1",
      duringTurn: "t1",
      gate: declared,
      gateHash: createHash("sha256").update(canonical(declared)).digest("hex"),
      path: met,
      envelopeHash: hashOf(GATED),
      ...more,
    },
  ];
  const byGate = { hop: { ...facts, guards: [{ kind: "gate", isMet: true, found: "ready", gateId: "gate_1" }] } };
  const other = { name: "ready", guards: [{ kind: "files", exist: ["x"] }] };

  test("a hop through a gate has its proof on record", () => {
    const steps = [enter(GATED), proof("gate.passed"), ...hop(GATED, EDIT, byGate)];
    expect(codes(replayed(turnIn(GATED, ...steps)))).toEqual([]);
  });

  test.each<readonly [what: string, steps: readonly Step[]]>([
    ["without a proof", [...hop(GATED, EDIT, byGate)]],
    ["by another proof than the hop names", [proof("gate.passed", { gateId: "gate_2" }), ...hop(GATED, EDIT, byGate)]],
    ["by a refusal", [proof("gate.refused", { path: [{ ...met[0], isMet: false }] }), ...hop(GATED, EDIT, byGate)]],
    ["by a proof in another envelope", [proof("gate.passed", { envelopeHash: "x" }), ...hop(GATED, EDIT, byGate)]],
    ["by a gate that declares less", [proof("gate.passed", { gate: other }), ...hop(GATED, EDIT, byGate)]],
    [
      "by another gate of the name",
      [
        proof("gate.passed", { gate: other, gateHash: createHash("sha256").update(canonical(other)).digest("hex") }),
        ...hop(GATED, EDIT, byGate),
      ],
    ],
    ["by a proof that leaves out a guard", [proof("gate.passed", { path: [] }), ...hop(GATED, EDIT, byGate)]],
    [
      "by a proof from before the envelope was entered",
      [
        proof("gate.passed"),
        ...hop(GATED, EDIT, byGate),
        ...hop(EDIT, GATED, { cause: "back" }),
        ...hop(GATED, EDIT, byGate),
      ],
    ],
  ])("Verify: gate_unproven: a hop through a gate %s is found", (_what, steps) => {
    expect(new Set(replayed(turnIn(GATED, enter(GATED), ...steps)).findings.map(({ code }) => code))).toEqual(
      new Set(["gate_unproven"]),
    );
  });
});
