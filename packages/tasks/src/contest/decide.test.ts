/** Which contestant is picked, or what is waited for; the standings are all there is to it. */
import { expect, test } from "vitest";
import { decide, orderOf, rowsOf, type ContestCase, type Measured, type Standing } from "./decide.ts";

const size = (added: number, removed = 0): Measured => ({ size: { files: 1, added, removed } });

function standing(number: number, more: Partial<Standing> = {}): Standing {
  return {
    number,
    name: `agent-${number}`,
    taskId: `task_${number}`,
    state: more.stands ?? "verified",
    stands: "verified",
    why: "",
    isCostPartial: false,
    costUsd: 1,
    timeMs: 1000,
    turns: 1,
    tokens: 10,
    measured: size(1),
    ...(more.stands === undefined || more.stands === "verified" ? { verifiedAt: number } : {}),
    ...more,
  };
}

function contest(standings: readonly Standing[], more: Partial<ContestCase> = {}): ContestCase {
  return { pick: "first-verified", order: ["lines", "cost", "time"], standings, refused: [], ...more };
}

const best = (...order: ContestCase["order"]): Partial<ContestCase> => ({ pick: "best", order });
const winner = (of: ContestCase): number | undefined => {
  const act = decide(of);
  return act.kind === "pick" ? act.number : undefined;
};

test("while nobody is verified it waits for those who are under way, and names them", () => {
  const act = decide(contest([standing(1, { stands: "under-way" }), standing(2, { stands: "stopped" })]));
  expect(act).toEqual({ kind: "wait", message: "waits for its contestants: 1 agent-1", isStuck: false });
});

test("a contestant that waits for the user holds the contest only while nobody else is verified", () => {
  const held = standing(1, { stands: "held", why: "paused" });
  const act = decide(contest([held, standing(2, { stands: "stopped" })]));
  const message = "waits for the user: 1 agent-1 (task_1: paused); accept, resume or cancel them";
  expect(act).toEqual({ kind: "wait", message, isStuck: true });
  expect(winner(contest([held, standing(2)], best("lines")))).toBe(2);
});

test("the first verified is the one whose verdict is earlier in the journal, wherever it stands in the spec", () => {
  const late = standing(1, { verifiedAt: 90 });
  expect(winner(contest([late, standing(2, { verifiedAt: 20 }), standing(3, { stands: "under-way" })]))).toBe(2);
});

test("an unverified contestant is never picked, also when it is the fastest, cheapest and smallest", () => {
  const liar = standing(1, { stands: "stopped", timeMs: 0, costUsd: 0, measured: size(0), why: "it lied" });
  for (const more of [{}, best("lines"), best("cost"), best("time")])
    expect(winner(contest([liar, standing(2, { timeMs: 9e9, costUsd: 900, measured: size(9000) })], more))).toBe(2);
});

test("best waits for all, and decides by each measure of its order", () => {
  const one = standing(1, { measured: size(9), costUsd: 1, timeMs: 500 });
  const two = standing(2, { measured: size(3, 2), costUsd: 2, timeMs: 600 });
  const three = standing(3, { measured: size(9), costUsd: 3, timeMs: 100 });
  expect(decide(contest([one, standing(2, { stands: "under-way" })], best("cost"))).kind).toBe("wait");
  expect(winner(contest([one, two, three], best("lines")))).toBe(2);
  expect(winner(contest([one, two, three], best("cost")))).toBe(1);
  expect(winner(contest([one, two, three], best("time")))).toBe(3);
  expect(winner(contest([three, one], best("lines", "time")))).toBe(3);
});

test("of two that are equal in everything the one that the spec names first is picked, in whatever order they are read", () => {
  const [a, b] = [standing(1, { verifiedAt: 7 }), standing(2, { verifiedAt: 5 })];
  expect(winner(contest([a, b], best("lines", "cost", "time")))).toBe(1);
  expect(winner(contest([b, a], best("lines", "cost", "time")))).toBe(1);
});

test("a cost that is not known is more than every cost that is, never 0", () => {
  const { costUsd: _, ...bare } = standing(1, { isCostPartial: true });
  expect(winner(contest([bare, standing(2, { costUsd: 50 })], best("cost")))).toBe(2);
  expect(rowsOf(contest([bare]))).toEqual([
    {
      number: 1,
      name: "agent-1",
      taskId: "task_1",
      state: "verified",
      isVerified: true,
      isPicked: false,
      why: "verified, after another one",
      rank: 1,
      isCostPartial: true,
      timeMs: 1000,
      turns: 1,
      tokens: 10,
      size: { files: 1, added: 1, removed: 0 },
    },
  ]);
});

test("what is verified is measured before it is ranked; of the first only the first", () => {
  const [a, b] = [standing(1), standing(2)].map(({ measured: _, ...rest }) => rest);
  if (a === undefined || b === undefined) throw new Error("two");
  expect(decide(contest([a, b]))).toEqual({ kind: "measure", numbers: [1] });
  expect(decide(contest([a, b], best("lines")))).toEqual({ kind: "measure", numbers: [1, 2] });
});

test("the highest score is best; a score that cannot be taken ranks last with the reason and never picks", () => {
  const scored = (number: number, value: number): Standing =>
    standing(number, { measured: { ...size(1), score: { value } } });
  const broken = standing(3, { measured: { ...size(0), score: { problem: "it printed no number" } } });
  const order = orderOf({ score: { run: "score", timeoutMs: 1 } });
  expect(order).toEqual(["score", "lines", "cost", "time"]);
  const act = decide(contest([broken, scored(1, -2), scored(2, 7.5)], best(...order)));
  if (act.kind !== "pick") throw new Error(act.kind);
  expect(act).toMatchObject({ number: 2, reason: "the best of 3 verified by score, then lines, then cost, then time" });
  expect(act.rows.map(({ number, rank, score, why }) => ({ number, rank, score, why }))).toEqual([
    {
      number: 3,
      rank: 3,
      score: undefined,
      why: "verified, but its score could not be taken: it printed no number",
    },
    { number: 1, rank: 2, score: -2, why: "verified, rank 2 by score, then lines, then cost, then time" },
    { number: 2, rank: 1, score: 7.5, why: "the best of 3 verified by score, then lines, then cost, then time" },
  ]);
  expect(decide(contest([broken], best(...order)))).toMatchObject({
    kind: "nobody",
    reason: "no verified contestant could be scored",
  });
});

test("nobody verified: nobody is picked, and the table says why of each", () => {
  const why = (number: number, reason: string): Standing => standing(number, { stands: "stopped", why: reason });
  expect(decide(contest([why(1, "its claim was refuted"), why(2, "cancelled")]))).toMatchObject({
    kind: "nobody",
    reason: "none of the 2 contestants is verified",
    rows: [
      { number: 1, isVerified: false, isPicked: false, why: "its claim was refuted" },
      { number: 2, isVerified: false, isPicked: false, why: "cancelled" },
    ],
  });
});

test("one that was refused when it was judged for the contest is not picked again; the next one is", () => {
  expect(winner(contest([standing(1), standing(2)], { refused: [1] }))).toBe(2);
  expect(decide(contest([standing(1)], { refused: [1] }))).toMatchObject({
    kind: "nobody",
    reason: "no contestant is verified when it is judged for the contest",
  });
});
