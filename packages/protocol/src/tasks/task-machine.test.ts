import { expect, test } from "vitest";
import type { EventOf } from "../events/events.ts";
import type { TaskEventBody } from "./task-event-kinds.ts";
import { afterEvents } from "./task-machine.ts";
import type { CheckResult } from "./task-checks.ts";
import type { TaskRecord } from "./task-record.ts";
import { TaskSpec } from "./task-spec.ts";
import { EVENT_VERSIONS } from "../events/upcast.ts";
import { NO_USAGE } from "../threads/usage.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const spec = TaskSpec.parse({
  name: "t",
  workspace: "/w",
  goal: "g",
  checks: [{ kind: "file-exists", path: "a" }],
});
const passed: CheckResult = {
  name: "a",
  kind: "file-exists",
  outcome: "passed",
  message: "",
  startedAt: 0,
  durationMs: 5,
};

const created: TaskEventBody = { type: "task.created", v: 1, spec, source: { kind: "cli" } };
const taken = (attempt: number): TaskEventBody => ({ type: "task.taken", v: 1, attempt, holder });
const prompted = (attempt: number, round: number): TaskEventBody => ({
  type: "task.prompted",
  v: 1,
  attempt,
  round,
  clientId: `c${attempt}.${round}`,
  why: round === 1 ? "first" : "rejected",
  text: "do it",
});
const ended = (attempt: number, round: number): TaskEventBody => ({
  type: "task.turn-ended",
  v: 1,
  attempt,
  round,
  turnId: "t",
  status: "completed",
  usage: { ...NO_USAGE, inputTokens: 10, outputTokens: 2 },
  durationMs: 100,
});
const claimed = (attempt: number): TaskEventBody => ({
  type: "task.claimed",
  v: 1,
  attempt,
  by: "report",
  summary: "done",
});
const checked = (attempt: number, results: CheckResult[], isPassed = true): TaskEventBody => ({
  type: "task.checked",
  v: 1,
  attempt,
  round: 1,
  results,
  violations: [],
  passed: isPassed,
});
const verified = (attempt: number): TaskEventBody => ({ type: "task.verified", v: 1, attempt });

const run = (bodies: readonly TaskEventBody[], from?: TaskRecord): TaskRecord =>
  afterEvents(from, "task_1", bodies, 1000);
const toClaim = [created, taken(1), prompted(1, 1), ended(1, 1), claimed(1)];

test("a task whose checks passed is verified, and only then", () => {
  const task = run([...toClaim, checked(1, [passed]), verified(1)]);
  expect(task).toMatchObject({ state: "verified", spent: { timeMs: 105, turns: 1, tokens: 12, nudges: 0 } });
  expect(task.holder).toBeUndefined();
  expect(() => run([...toClaim, verified(1)])).toThrow(/does not fit/);
});

test.each([
  ["a check that failed", [{ ...passed, outcome: "failed" as const }]],
  ["a check that could not be run", [{ ...passed, outcome: "error" as const }]],
  ["no results at all", []],
])("%s does not verify, whatever `passed` says", (_, results) => {
  expect(() => run([...toClaim, checked(1, results, true), verified(1)])).toThrow(/does not fit/);
});

test("checks of an earlier attempt verify nothing, and a stale attempt is refused", () => {
  const first = run([...toClaim, checked(1, [{ ...passed, outcome: "failed" }], false)]);
  const second = run([taken(2), prompted(2, 2), ended(2, 2), claimed(2)], first);
  expect(() => run([verified(2)], second)).toThrow(/does not fit/);
  expect(() => run([checked(1, [passed])], second)).toThrow(/not the current one/);
});

test("a prompt is open until its turn ended, and a second one is refused meanwhile", () => {
  const task = run([created, taken(1), prompted(1, 1)]);
  expect(task.openPrompt).toMatchObject({ round: 1, clientId: "c1.1" });
  expect(() => run([prompted(1, 2)], task)).toThrow(/does not fit/);
});

test("a task without checks ends at claimed, and says so", () => {
  const bare = TaskSpec.parse({ name: "t", workspace: "/w", goal: "g" });
  const task = run([{ ...created, spec: bare }, taken(1), prompted(1, 1), ended(1, 1), claimed(1)]);
  expect(task.state).toBe("claimed");
  expect(task.holder).toBeUndefined();
  expect(() => run([verified(1)], task)).toThrow(/does not fit/);
});

test("26: an archived task takes nothing but to be brought back", () => {
  const task = run([
    created,
    { type: "task.cancelled", v: 1, reason: "no" },
    { type: "task.archived", v: 1, isArchived: true },
  ]);
  expect(task.state).toBe("archived");
  expect(() => run([{ type: "task.resumed", v: 1 }], task)).toThrow(/archived/);
  expect(run([{ type: "task.archived", v: 1, isArchived: false }], task).state).toBe("cancelled");
});

const fail = { code: "provider.overloaded", message: "busy" };
const failedCheck = checked(1, [{ ...passed, outcome: "failed" }], false);
const rejected: TaskEventBody = { type: "task.rejected", v: 1, attempt: 1, failing: ["a"] };
const waited = (cause: EventOf<"task.waited">["cause"]): TaskEventBody => ({
  type: "task.waited",
  v: 1,
  cause,
  message: "",
});
const paused: TaskEventBody = { type: "task.paused", v: 1, cause: "user", message: "" };
const cancelled: TaskEventBody = { type: "task.cancelled", v: 1, reason: "" };
const failed: TaskEventBody = { type: "task.failed", v: 1, class: "provider", failure: fail };
const stalled = (episode: number): TaskEventBody => ({
  type: "task.stalled",
  v: 1,
  attempt: 1,
  episode,
  message: "",
  quietMs: 1,
  culprits: [],
});
const archived = (isArchived: boolean): TaskEventBody => ({ type: "task.archived", v: 1, isArchived });

/** One task for each state a task can be in, and how it came there. */
const STATES = {
  pending: [created],
  queued: [created, waited("dependency")],
  taken: [created, taken(1)],
  prompted: [created, taken(1), prompted(1, 1)],
  asking: [created, taken(1), prompted(1, 1), waited("approval")],
  stalled: [created, taken(1), prompted(1, 1), stalled(1)],
  claimed: toClaim,
  passed: [...toClaim, checked(1, [passed])],
  refuted: [...toClaim, failedCheck],
  rejected: [...toClaim, failedCheck, rejected],
  paused: [created, paused],
  pausedInTurn: [created, taken(1), prompted(1, 1), paused],
  verified: [...toClaim, checked(1, [passed]), verified(1)],
  failed: [created, failed],
  cancelled: [created, cancelled],
  said: [created, { ...claimed(1), by: "user" } as TaskEventBody],
  archived: [created, cancelled, archived(true)],
} satisfies Record<string, readonly TaskEventBody[]>;
type StateName = keyof typeof STATES;

const HELD: readonly StateName[] = [
  "taken",
  "prompted",
  "asking",
  "stalled",
  "claimed",
  "passed",
  "refuted",
  "rejected",
];
const OPEN: readonly StateName[] = ["pending", "queued", ...HELD];
const NOT_OVER: readonly StateName[] = [...OPEN, "paused", "pausedInTurn"];
const OVER: readonly StateName[] = ["verified", "failed", "cancelled", "said"];
const ALL = [...NOT_OVER, ...OVER, "archived"] as const;

const IN_TURN: ReadonlySet<StateName> = new Set(["prompted", "asking", "stalled"]);

const next = (state: StateName): number => run(STATES[state]).attempt + 1;
const round = (state: StateName): number => run(STATES[state]).round + 1;

const hopDue = (index: number, to: string): TaskEventBody => ({
  type: "task.hop-due",
  v: 1,
  attempt: 1,
  index,
  to,
  summary: "",
});
const hopped = (index: number, to: string): TaskEventBody => ({ type: "task.hopped", v: 1, attempt: 1, index, to });
const hopRefused = (index: number, to: string): TaskEventBody => ({
  type: "task.hop-refused",
  v: 1,
  attempt: 1,
  index,
  to,
  failure: { code: "hop.guard-failed", message: "not yet" },
});

test("the hops of a spec are taken in order, between turns, and only then the agent's claim counts", () => {
  const hopping = { ...created, spec: { ...spec, envelope: "explore", hops: [hopTo("edit"), hopTo("test")] } };
  const [begun, turn] = [[hopping, taken(1), prompted(1, 1)] as const, ended(1, 1)];
  const illegal = (...bodies: readonly TaskEventBody[]): void =>
    expect(() => run(bodies)).toThrow(expect.objectContaining({ code: "task.illegal" }));
  illegal(...begun, hopDue(0, "edit"));
  illegal(...begun, turn, claimed(1));
  illegal(...begun, turn, hopped(1, "test"));
  illegal(...begun, turn, hopped(0, "test"));
  const first = [...begun, turn, hopDue(0, "edit"), hopRefused(0, "edit")] as const;
  expect(run(first).hops).toEqual({ taken: 0, refused: "not yet" });
  illegal(...first, hopped(1, "test"));
  expect(run([...first, hopped(0, "edit")]).hops).toEqual({ taken: 1 });
  illegal(...first, hopped(0, "edit"), claimed(1));
  const both = [...first, hopped(0, "edit"), hopped(1, "test")] as const;
  expect(run([...both, claimed(1)])).toMatchObject({ state: "claimed", hops: { taken: 2 } });
  illegal(...both, hopDue(2, "edit"));
});

test("in another thread the hops of a spec begin anew, and in the same one they do not", () => {
  const hopping = { ...created, spec: { ...spec, envelope: "explore", hops: [hopTo("edit")] } };
  const prepared = (threadId: string): TaskEventBody => ({
    type: "task.prepared",
    v: 1,
    attempt: 1,
    threadId,
    folder: "/w",
  });
  const there = run([hopping, taken(1), prepared("a"), prompted(1, 1), ended(1, 1), hopped(0, "edit")]);
  expect(run([prepared("a")], there).hops).toEqual({ taken: 1 });
  expect("hops" in run([prepared("b")], there)).toBe(false);
  const again: TaskEventBody = { type: "task.retried", v: 1, attempt: 1, class: "turn", reason: "" };
  expect(run([again], there).hops).toEqual({ taken: 1 });
  expect("hops" in run([{ ...again, isFresh: true }], there)).toBe(false);
});

function hopTo(to: string): NonNullable<TaskSpec["hops"]>[number] {
  return { to, reason: "the next part of the task" };
}

/** Every event, made to fit as well as it can where it is tried, and the states that take it. Everywhere else it is refused. */
const MOVES: readonly (readonly [string, (state: StateName) => TaskEventBody, readonly StateName[]])[] = [
  ["created", () => created, []],
  ["waited in the queue", () => waited("backoff"), ["pending", "queued"]],
  ["waited during an attempt", () => waited("provider"), HELD],
  ["woken", () => ({ type: "task.woken", v: 1 }), ["queued", "asking"]],
  ["taken", (state) => taken(next(state)), OPEN],
  ["prepared", () => ({ type: "task.prepared", v: 1, attempt: 1, threadId: "t", folder: "/w" }), HELD],
  ["prompted", (state) => prompted(1, round(state)), HELD.filter((name) => !IN_TURN.has(name))],
  ["turn-ended", () => ended(1, 1), ["prompted", "asking", "stalled", "pausedInTurn"]],
  ["progressed", () => ({ type: "task.progressed", v: 1, attempt: 1, stepsDone: [1] }), HELD],
  ["claimed", () => claimed(1), HELD.filter((name) => !IN_TURN.has(name))],
  ["claimed by its user", () => ({ ...claimed(1), by: "user" }) as TaskEventBody, NOT_OVER],
  ["checked", () => checked(1, [passed]), ["claimed", "passed", "refuted"]],
  ["checking", () => ({ type: "task.checking", v: 1, attempt: 1, name: "a", room: "work" }), HELD],
  ["verified", () => verified(1), ["passed"]],
  ["rejected", () => rejected, ["refuted"]],
  ["merged", () => ({ type: "task.merged", v: 1, attempt: 1, how: "branch", ref: "r" }), [...HELD, "verified"]],
  ["paused", () => paused, OPEN],
  ["resumed", () => ({ type: "task.resumed", v: 1 }), ["paused", "pausedInTurn"]],
  ["warned", () => ({ type: "task.budget-warned", v: 1, what: "time", spent: 8, limit: 10 }), HELD],
  ["stalled", (state) => stalled(state === "stalled" ? 2 : 1), HELD.filter((name) => name !== "stalled")],
  ["recovered", () => ({ type: "task.recovered", v: 1, attempt: 1, episode: 1 }), ["stalled"]],
  [
    "stall-acted",
    () => ({ type: "task.stall-acted", v: 1, attempt: 1, episode: 1, action: "eof", message: "" }),
    ["stalled"],
  ],
  ["failed", () => failed, NOT_OVER],
  ["retried by the user", () => ({ type: "task.retried", v: 1, reason: "" }), ["failed", "cancelled", "said"]],
  ["retried by rule", () => ({ type: "task.retried", v: 1, attempt: 1, class: "provider", reason: "" }), HELD],
  ["cancelled", () => cancelled, NOT_OVER],
  ["changed", () => ({ type: "task.changed", v: 1, priority: 2 }), ALL.filter((name) => name !== "archived")],
  ["undone", () => ({ type: "task.undone", v: 1, files: 1 }), ["pending", "queued", "paused", "pausedInTurn", ...OVER]],
  ["archived", () => archived(true), OVER],
  ["brought back", () => archived(false), ["archived"]],
  // These specs have no hops.
  ["hop-due", () => hopDue(0, "edit"), []],
  ["hopped", () => hopped(0, "edit"), []],
  ["hop-refused", () => hopRefused(0, "edit"), []],
  // These specs have no agents.
  ["contest-opened", () => ({ type: "task.contest-opened", v: 1, attempt: 1, generation: 1, contestants: [] }), []],
  ["contest-picked", () => ({ type: "task.contest-picked", v: 1, attempt: 1, number: 1, reason: "", rows: [] }), []],
  ["contest-ended", () => ({ type: "task.contest-ended", v: 1, attempt: 1, reason: "", rows: [] }), []],
  ["waits for contestants", () => waited("contest"), []],
  ["deleted", () => ({ type: "task.deleted", v: 1 }), [...OVER, "archived"]],
];

test.each(MOVES)("26: %s is taken where it fits and refused everywhere else, by a code", (_, make, states) => {
  const takers = ALL.filter((state) => {
    try {
      run([make(state)], run(STATES[state]));
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "task.illegal" });
      return false;
    }
  });
  expect(takers).toEqual(ALL.filter((state) => states.includes(state)));
});

test("every kind of event of a task has its row", () => {
  const rows = new Set<string>(MOVES.map(([, make]) => make("pending").type));
  const kinds = Object.keys(EVENT_VERSIONS).filter((type) => type.startsWith("task."));
  expect(kinds.filter((type) => !rows.has(type))).toEqual([]);
});

test.each(MOVES.filter(([, make]) => "attempt" in make("taken") && make("taken").type !== "task.taken"))(
  "the fence: %s of another attempt is stale, and so is one of no attempt that was",
  (_, make) => {
    const second = run([taken(2)], run(STATES.taken));
    expect(() => run([{ ...make("taken"), attempt: 1 } as TaskEventBody], second)).toThrow(/not the current one/);
    expect(() => run([{ ...make("taken"), attempt: 3 } as TaskEventBody], second)).toThrow(/not the current one/);
  },
);

test("what a person says begins the count of nudges and retries anew, and more of what ran out is added", () => {
  const nudged = run([...STATES.rejected, prompted(1, 2), ended(1, 2)]);
  expect(nudged.spent).toMatchObject({ nudges: 1, turns: 2 });
  const retried = run(
    [{ type: "task.retried", v: 1, attempt: 1, class: "provider", failure: fail, reason: "" }],
    nudged,
  );
  expect(retried).toMatchObject({ state: "pending", retries: 1, spent: { nudges: 1 } });
  const received = run([paused, { type: "task.resumed", v: 1, budget: { turns: 5 } }], retried);
  expect(received).toMatchObject({
    state: "pending",
    retries: 0,
    spent: { nudges: 0, turns: 2 },
    extraBudget: { turns: 5 },
  });
});

test("a prompt outlives a pause: its turn is counted then, and again nowhere", () => {
  const task = run([ended(1, 1)], run(STATES.pausedInTurn));
  expect(task).toMatchObject({ state: "paused", spent: { turns: 1, tokens: 12 } });
  expect(() => run([ended(1, 1)], task)).toThrow(/does not fit/);
});

const review = {
  reasons: [{ kind: "rests" as const, message: "it rests on a.js", files: ["a.js"] }],
  deliver: ["a.js"],
};
const reviewed: TaskEventBody = { ...(checked(1, [passed], false) as EventOf<"task.checked">), review };
const putToOwner: TaskEventBody = { type: "task.paused", v: 1, cause: "review", message: "it rests on a.js" };

test("13: work that is put to its owner is neither verified nor rejected, and what they accept is judged again", () => {
  expect(() => run([...toClaim, reviewed, { type: "task.rejected", v: 1, attempt: 1, failing: [] }])).toThrow(/fit/);
  const passing: TaskEventBody = { ...(checked(1, [passed]) as EventOf<"task.checked">), review };
  expect(() => run([...toClaim, passing, verified(1)])).toThrow(/does not fit/);
  const waiting = run([...toClaim, reviewed, putToOwner]);
  expect(waiting).toMatchObject({ state: "paused", stateBefore: "claimed", lastCheck: { review } });
  const accepted = run([{ type: "task.resumed", v: 1, deliver: ["a.js"] }], waiting);
  expect(accepted).toMatchObject({ state: "pending", deliver: ["a.js"] });
  const done = run([taken(2), claimed(2), checked(2, [passed]), verified(2)], accepted);
  expect(done).toMatchObject({ state: "verified", deliver: ["a.js"] });
  const again = run([taken(2), { ...(prompted(2, 2) as EventOf<"task.prompted">), why: "resumed" }], accepted);
  expect(again.deliver).toBeUndefined();
});

test("13: nothing is accepted that was not put to anybody", () => {
  expect(() => run([...toClaim, paused, { type: "task.resumed", v: 1, deliver: ["a.js"] }])).toThrow(
    /cannot be accepted/,
  );
  expect(() => run([...toClaim, putToOwner])).toThrow(/does not fit/);
});

test("13: the check that runs is part of the task until the verdict", () => {
  const checking: TaskEventBody = { type: "task.checking", v: 1, attempt: 1, name: "a", room: "work" };
  const running = run([...toClaim, checking]);
  expect(running.checking).toEqual({ name: "a", room: "work", since: 1000 });
  expect(run([checked(1, [passed])], running).checking).toBeUndefined();
  expect(run([{ type: "task.cancelled", v: 1, reason: "no" }], running).checking).toBeUndefined();
});

test("13: judging counts with all its time", () => {
  const long: TaskEventBody = { ...(checked(1, [passed]) as EventOf<"task.checked">), durationMs: 900 };
  expect(run([...toClaim, long]).spent.timeMs).toBe(1000);
});

test("13: what was put back is said while nobody works on it", () => {
  const undone: TaskEventBody = { type: "task.undone", v: 1, files: 3 };
  expect(run([...toClaim, checked(1, [passed]), verified(1), undone])).toMatchObject({
    state: "verified",
    undone: { at: 1000, files: 3 },
  });
  expect(() => run([...toClaim, undone])).toThrow(/does not fit/);
});

test("what its owner changes holds from there on, and nothing else of the spec does", () => {
  const bodies: TaskEventBody[] = [
    created,
    paused,
    { type: "task.resumed", v: 1, budget: { turns: 5, tokens: 10 } },
    { type: "task.changed", v: 1, name: "n", labels: ["red"], priority: 4, budget: { turns: 3 } },
  ];
  const task = afterEvents(undefined, "task_1", bodies, 1);
  expect(task).toMatchObject({ state: "pending", extraBudget: { tokens: 10 } });
  const { budget } = spec;
  expect(task.spec).toEqual({ ...spec, name: "n", labels: ["red"], priority: 4, budget: { ...budget, turns: 3 } });
});
