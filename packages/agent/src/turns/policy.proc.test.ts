import { EVENT_VERSIONS, NO_USAGE, type ApprovalQuestion, type EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";
import { RUNNER_EVENTS, type Runner, type TurnIo, type TurnOutcome, type TurnRequest } from "../runners/runner.ts";
import { EVERY_ABILITY } from "../runners/abilities.ts";
import { notice } from "../runners/notes.ts";
import { OWN_HEALTH } from "../runners/own-health.ts";

const COMPLETED: TurnOutcome = { kind: "completed", spent: { usage: NO_USAGE } };

/** A runner that is no loop of Heddle's. */
function runnerOf(run: (io: TurnIo, turn: TurnRequest) => Promise<void>): Runner {
  return {
    name: "other",
    capabilities: EVERY_ABILITY,
    probe: () => Promise.resolve(OWN_HEALTH),
    check: async () => undefined,
    run: async (turn, io) => {
      await run(io, turn);
      return COMPLETED;
    },
  };
}

async function refusalOf(io: TurnIo, event: unknown, author?: string): Promise<string> {
  try {
    await Reflect.apply(io["record"].bind(io), io, [[event], author]);
  } catch (error) {
    const { code, message } = Object(error);
    return `${code}: ${message}`;
  }
  return "recorded";
}

async function stored(t: TestHeddle, text: string): Promise<readonly EventBody[]> {
  const turn = await t.start(text);
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  return (await t.events(turn.threadId)).map(({ body }) => body);
}

test("14.6: a runner records what is on the list, of its own turn and in the name of who spoke to it, and no more", async () => {
  const allowed = new Set<string>(RUNNER_EVENTS);
  const forbidden = Object.keys(EVENT_VERSIONS).filter((type) => !allowed.has(type));
  const said = { level: "warning", code: "x", message: "said" } as const;
  const refusals: string[] = [];
  const runner = runnerOf(async (io, { turnId }) => {
    for (const type of forbidden) refusals.push(await refusalOf(io, { type, v: 1, turnId }));
    const [started] = notice("another-turn", said);
    refusals.push(await refusalOf(io, started));
    refusals.push(await refusalOf(io, notice(turnId, said)[0], "user:nobody"));
    refusals.push(await refusalOf(io, notice(turnId, said)[0], "policy:unattended"));
    await io.record(notice(turnId, said), "user:owner");
  });
  await using t = await openTestHeddle({ runner });
  const events = await stored(t, "try everything");
  expect(forbidden).toEqual(
    expect.arrayContaining(["turn.completed", "approval.resolved", "thread.deleted", "hop.taken", "hook.ran"]),
  );
  expect(refusals.filter((refusal) => !refusal.startsWith("policy.denied: the runner other may not record "))).toEqual(
    [],
  );
  expect(refusals.slice(-3)).toEqual([
    "policy.denied: the runner other may not record item.started for another turn",
    "policy.denied: the runner other may not record in the name of user:nobody, who sent nothing to this turn",
    "policy.denied: the runner other may not record in the name of policy:unattended, who sent nothing to this turn",
  ]);
  expect(events.map(({ type }) => type)).toEqual([
    "thread.created",
    "turn.admitted",
    "turn.started",
    "envelope.entered",
    "item.started",
    "item.completed",
    "turn.completed",
  ]);
});

test("14.6: any runner gets remembered approvals and Stop hooks from its turn", async () => {
  const question: ApprovalQuestion = { kind: "command", callId: "c", itemId: "i", command: "make", cwd: "/w" };
  const answers: unknown[] = [];
  const reasons: (string | undefined)[] = [];
  const runner = runnerOf(async (io) => {
    for (const callId of ["first", "second"]) answers.push(await io.ask({ ...question, callId, itemId: callId }));
    for (let round = 0; round < 4; round += 1) reasons.push(await io.policy.reasonToContinue("done"));
  });
  const hooks = [{ event: "Stop" as const, command: "echo more >&2; exit 2" }];
  await using t = await openTestHeddle({ runner, hooks, isUnattended: false });
  const turn = await t.start("ask");
  const { approvalId } = await t.next(turn.threadId, "approval.requested");
  await t.heddle.as("user:owner").answer({ threadId: turn.threadId, approvalId, decision: "acceptForThread" });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  expect(answers).toMatchObject([
    { decision: "acceptForThread", by: "user:owner" },
    { decision: "acceptForThread", by: "policy:remembered" },
  ]);
  expect(reasons.map((reason) => reason?.trim())).toEqual(["more", "more", "more", undefined]);
  // A later turn of the thread finds it in the record.
  const later = await t.start("ask again", { thread: turn.threadId });
  expect((await later.done).body).toMatchObject({ status: "completed" });
  const asked = (await t.events(turn.threadId)).filter(({ body }) => body.type === "approval.requested");
  expect(asked).toHaveLength(1);
});

test("14.6: a runner that never finishes is stopped by its turn", async () => {
  const request = { type: "model.requested", v: 1, provider: "p", model: "m", requestBytes: 1 } as const;
  const runner = runnerOf(async (io, { turnId }) => {
    for (let nth = 0; ; nth += 1) await io.record([{ ...request, turnId, requestId: String(nth) }]);
  });
  await using t = await openTestHeddle({ runner });
  const turn = await t.start("go in circles");
  const message = "the model made 200 requests without finishing";
  expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "limit.reached", message } });
});
