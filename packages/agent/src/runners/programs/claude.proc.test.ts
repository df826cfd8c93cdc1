import { expect, inject, test } from "vitest";
import { playedOptions, playedSubject } from "../../../test/played-subject.ts";
import { openTestHeddle } from "../../../test/test-heddle.ts";
import { runnerSuite } from "../runner.suite.ts";
import { claudeDialect } from "./claude.ts";

const children = inject("children");

runnerSuite(playedSubject("claude", claudeDialect.capabilities, children));

test("a conversation that Claude Code does not find is begun anew, with the past as text", async () => {
  await using first = await openTestHeddle(playedOptions("claude", [{ says: "done" }], children));
  const { threadId, done } = await first.start("say something");
  expect((await done).body).toMatchObject({ status: "completed" });
  const steps = [{ forgets: true }, { says: "again" }] as const;
  await using second = await openTestHeddle({
    ...playedOptions("claude", steps, children),
    folder: first.folder,
  });
  const turn = await second.start("and again", { thread: threadId });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const events = (await second.events(threadId)).map(({ body }) => body);
  const connected = events.flatMap((body) => (body.type === "agent.connected" ? [body] : []));
  expect(connected.map(({ origin }) => origin)).toEqual(["new", "retold"]);
  expect(connected[0]?.handle).not.toBe(connected[1]?.handle);
  // The one in between leaves by itself, or is ended before it has.
  const ends = events.flatMap((body) => (body.type === "agent.ended" ? [body.end] : []));
  expect(ends).toHaveLength(3);
  expect([ends[0], ends[2]]).toEqual(["stopped", "stopped"]);
});
