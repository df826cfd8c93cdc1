import { expect, inject, test } from "vitest";
import { playedOptions, playedSubject } from "../../../test/played-subject.ts";
import { openTestHeddle } from "../../../test/test-heddle.ts";
import { runnerSuite } from "../runner.suite.ts";
import { acpDialect } from "./acp.ts";

const children = inject("children");

runnerSuite(playedSubject("acp", acpDialect.capabilities, children));

test("an agent that has said that it reads no images is not given a turn with one again", async () => {
  await using t = await openTestHeddle(playedOptions("acp", [{ says: "done" }], children));
  const { threadId, done } = await t.start("say something");
  expect((await done).body).toMatchObject({ status: "completed" });
  const { version } = (await t.events(threadId)).at(-1) ?? {};
  const input = [{ type: "image", mediaType: "image/png", base64: "iVBORw0KGgo=" }] as const;
  const refused = t.heddle.as("user:owner").startTurn({ thread: threadId, input: [...input], settings: t.settings });
  await expect(refused).rejects.toMatchObject({ code: "runner.unsupported", details: { ability: "images" } });
  expect((await t.events(threadId)).at(-1)?.version).toBe(version);
});
