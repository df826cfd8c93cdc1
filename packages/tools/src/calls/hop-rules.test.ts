import type { Envelope, HopEdge } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFor } from "./envelopes.ts";
import {
  edgeTo,
  judgeHop,
  MAX_CARRY_BYTES,
  MAX_HOP_DEPTH,
  type HopAsked,
  type HopQuestion,
  type HopStep,
} from "./hop-rules.ts";

const base = { workspace: "/w", writableRoots: [], networkAccess: false, approval: "never", masked: ["/h"] } as const;
const CARRY = { type: "object", properties: { plan: { type: "string" } }, additionalProperties: false };
const TO_EDIT: HopEdge = { to: "edit", by: ["model", "task"], approval: "auto", carry: CARRY };
const TO_FULL: HopEdge = { to: "full", by: ["user"], approval: "ask" };
const explore: Envelope = { ...envelopeFor({ ...base, mode: "read-only" }), exits: [TO_EDIT, TO_FULL] };
const edit: Envelope = { ...envelopeFor({ ...base, mode: "workspace-write" }), exits: [] };
const full: Envelope = envelopeFor({ ...base, mode: "danger-full-access" });
const ENVELOPES: ReadonlyMap<string, Envelope> = new Map([explore, edit, full].map((one) => [one.id, one]));

const asked = (to: string, more: Partial<HopAsked> = {}): HopAsked => ({ to, reason: "found it", ...more });
const steps = (count: number, step: HopStep): HopStep[] => Array.from({ length: count }, () => step);

/** As a model would ask in `explore`, and what the test says instead. */
function verdictOf(request: HopAsked, more: Partial<HopQuestion> = {}): string {
  const from = more.from ?? explore;
  const stack = more.stack ?? [];
  const name = request.to === "back" ? (stack.at(-1)?.id ?? "") : request.to;
  const verdict = judgeHop({
    from,
    to: ENVELOPES.get(name),
    ceiling: undefined,
    edge: edgeTo(from, request.to, more.channel ?? "model"),
    request,
    channel: "model",
    stack,
    hopsThisTurn: 0,
    problemOf: (value) => (typeof Object(value).plan === "string" ? undefined : "plan must be string"),
    ...more,
  });
  return verdict.kind === "allowed" ? "allowed" : verdict.code;
}

const PLAN = { carry: { plan: "change a.ts" } };
const BY_MODEL: HopStep = { id: "edit", hash: "e", channel: "model" };

test.each([
  ["H1: an edge for the channel is allowed", asked("edit", PLAN), {}, "allowed"],
  ["H1: and for a task", asked("edit", PLAN), { channel: "task" }, "allowed"],
  ["H1: and for a user where the edge is for users", asked("full"), { channel: "user" }, "allowed"],
  ["H2: an envelope without an edge to it", asked("explore"), { from: edit, channel: "user" }, "hop.no-edge"],
  ["H2: a name that no envelope has", asked("nowhere"), {}, "hop.unknown-envelope"],
  ["H3: the envelope that the thread is in", asked("explore"), {}, "hop.same-envelope"],
  ["H4: the edge of a user, asked for by the model", asked("full"), {}, "hop.not-authorized"],
  [
    "H4: a model that says it is the user",
    Object.assign(asked("full", { reason: "by=user" }), { channel: "user", by: "user:owner" }),
    {},
    "hop.not-authorized",
  ],
  ["H4: the edge of a model, asked for by a user", asked("edit", PLAN), { channel: "user" }, "hop.not-authorized"],
  ["the ceiling holds for the model", asked("edit", PLAN), { ceiling: explore }, "ceiling.exceeded"],
  ["the ceiling holds for the user", asked("full"), { ceiling: edit, channel: "user" }, "ceiling.exceeded"],
  ["at the ceiling is not above it", asked("edit", PLAN), { ceiling: edit }, "allowed"],
  ["H10: carry that does not fit its schema", asked("edit", { carry: { plan: 3 } }), {}, "hop.carry-invalid"],
  ["H10: no carry where its schema asks for some", asked("edit"), {}, "hop.carry-invalid"],
  [
    "H10: carry that is too large",
    asked("edit", { carry: { plan: "é".repeat(MAX_CARRY_BYTES / 2) } }),
    {},
    "hop.carry-invalid",
  ],
  [
    "H10: an outcome that is too large",
    asked("full", { outcome: "x".repeat(MAX_CARRY_BYTES) }),
    { channel: "user" },
    "hop.carry-invalid",
  ],
  ["H10: carry on an edge for none", asked("full", PLAN), { channel: "user" }, "hop.carry-invalid"],
  ["H10: empty carry on an edge for none", asked("full", { carry: {} }), { channel: "user" }, "allowed"],
  ["H11: back where nothing was left", asked("back"), {}, "hop.no-edge"],
  ["H11: back to what the model left", asked("back"), { stack: [BY_MODEL] }, "allowed"],
  ["H11: back from a wider one", asked("back"), { from: edit, stack: [{ id: "explore", hash: "x" }] }, "allowed"],
  [
    "H11: the model cannot undo that its user narrowed it",
    asked("back"),
    { stack: [{ ...BY_MODEL, channel: "user" }] },
    "hop.not-authorized",
  ],
  ["H11: nor where nobody knows who did", asked("back"), { stack: [{ id: "edit", hash: "e" }] }, "hop.not-authorized"],
  ["H11: the user can", asked("back"), { stack: [{ ...BY_MODEL, channel: "user" }], channel: "user" }, "allowed"],
  ["H11: back carries nothing", asked("back", PLAN), { stack: [BY_MODEL] }, "hop.carry-invalid"],
  ["H11: back keeps the ceiling", asked("back"), { stack: [BY_MODEL], ceiling: explore }, "ceiling.exceeded"],
  [
    "H11: back to an envelope that was removed",
    asked("back"),
    { stack: [{ ...BY_MODEL, id: "gone" }] },
    "hop.unknown-envelope",
  ],
  ["H11: the stack is bounded", asked("edit", PLAN), { stack: steps(MAX_HOP_DEPTH, BY_MODEL) }, "hop.too-many"],
  ["H11: and has room below", asked("edit", PLAN), { stack: steps(MAX_HOP_DEPTH - 1, BY_MODEL) }, "allowed"],
  ["H12: the fourth hop of a turn", asked("edit", PLAN), { hopsThisTurn: 3 }, "allowed"],
  ["H12: the fifth", asked("edit", PLAN), { hopsThisTurn: 4 }, "hop.too-many"],
  ["H12: back counts too", asked("back"), { stack: [BY_MODEL], hopsThisTurn: 4 }, "hop.too-many"],
  ["H12: a user is not counted", asked("full"), { hopsThisTurn: 40, channel: "user" }, "allowed"],
  [
    "H12: the envelope names another number",
    asked("edit", PLAN),
    { from: { ...explore, limits: { hopsPerTurn: 0 } } },
    "hop.too-many",
  ],
] satisfies readonly (readonly [string, HopAsked, Partial<HopQuestion>, string])[])(
  "%s",
  (_name, request, more, expected) => expect(verdictOf(request, more)).toBe(expected),
);

test("a refusal says what would have been possible", () => {
  const request = asked("explore");
  const common = { ceiling: undefined, request, channel: "user", stack: [], hopsThisTurn: 0 } as const;
  const verdict = judgeHop({
    ...common,
    from: { ...edit, exits: [] },
    to: explore,
    edge: undefined,
    problemOf: () => undefined,
  });
  expect(verdict).toEqual({
    kind: "refused",
    code: "hop.no-edge",
    message: "no edge leads from edit to explore; none leads out",
  });
});
