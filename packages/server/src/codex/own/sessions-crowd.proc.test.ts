/** Much at once: acts on one session, and many sessions. */
import { expect, test } from "vitest";
import { openChatWorld } from "../../../test/chat-world.ts";
import { outputOf, sessionClient } from "../../../test/session-client.ts";
import { bodiesOf, ended, eventsOf, findings } from "../../../test/session-record.ts";

const IS_FULL = process.env["HEDDLE_E2E_FULL"] === "1";
const MANY = IS_FULL ? 100 : 12;

test("H13: of 100 hops, cancels, stops and closes at once at this door, each envelope is left exactly once", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { threadId, turnId } = await agent.call("envelope/enter", { envelope: "edit" });
  const acts = Array.from({ length: 100 }, (_, at) => {
    const callId = `h${at}`;
    switch (at % 5) {
      case 0:
      case 1:
        return agent.refused("envelope/hop", { turnId, callId, to: at < 50 ? "explore" : "review", reason: "on" });
      case 2:
        return agent.refused("envelope/hop", { turnId, callId, to: "back", reason: "back" });
      case 3:
        return agent.refused("tool/cancel", { turnId, callId: `h${at - 2}` });
      default:
        return at < 60
          ? agent.refused("tool/call", { turnId, callId, tool: "list" })
          : agent.refused("envelope/leave", { turnId });
    }
  });
  const stop = { code: "turn.interrupted", message: "enough" } as const;
  const stops = [1, 2, 3].map(() =>
    world.heddle
      .as("user:owner")
      .interrupt(turnId, stop)
      .catch(() => undefined),
  );
  agent[Symbol.dispose]();
  await Promise.allSettled([...acts, ...stops]);
  await ended(world, threadId);
  const path = (await eventsOf(world, threadId)).filter(
    ({ body }) => body.type === "envelope.entered" || body.type === "envelope.left" || body.type === "turn.completed",
  );
  expect(path.at(-1)?.body.type).toBe("turn.completed");
  const steps = path.slice(0, -1).map(({ body }) => body);
  for (const [at, body] of steps.entries()) {
    expect(body.type).toBe(at % 2 === 0 ? "envelope.entered" : "envelope.left");
    const before = steps[at - 1];
    if (body.type === "envelope.left" && before?.type === "envelope.entered")
      expect(body.envelopeHash).toBe(before.envelopeHash);
  }
  expect(steps.at(-1)).toMatchObject({ type: "envelope.left", cause: "end" });
  expect(await findings(world, threadId)).toEqual([]);
});

test(`many sessions at once (${MANY}; 100 with HEDDLE_E2E_FULL=1): each has its envelope, its calls and its one end`, async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const sessions = await Promise.all(
    Array.from({ length: MANY }, async (_, at) => {
      const { threadId, turnId } = await agent.call("envelope/enter", {
        envelope: "explore",
        agentName: `agent-${at}`,
      });
      const said = outputOf(await agent.run(turnId, "same", `echo I am ${at}`));
      return { threadId, turnId, said };
    }),
  );
  expect(sessions.map(({ said }) => /I am (\d+)/.exec(said)?.[1])).toEqual(sessions.map((_, at) => `${at}`));
  expect((await agent.call("envelope/sessions", {})).data).toHaveLength(MANY);
  // Half are left, the others end with their connection.
  await Promise.all(
    sessions.filter((_, at) => at % 2 === 0).map(({ turnId }) => agent.call("envelope/leave", { turnId })),
  );
  agent[Symbol.dispose]();
  for (const { threadId } of sessions) {
    await ended(world, threadId);
    expect((await bodiesOf(world, threadId, "envelope.left")).length).toBe(1);
  }
});
