import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { EventOf, EventType, StoredEvent } from "@heddle/protocol";
import { expect, inject, test } from "vitest";
import { playedOptions, playedSubject } from "../../../test/played-subject.ts";
import { openTestHeddle, type TestHeddleOptions } from "../../../test/test-heddle.ts";
import { runnerSuite } from "../runner.suite.ts";
import { codexExecDialect } from "./codex-exec.ts";

const children = inject("children");
const KEEPS = { keeps: "prompts.jsonl" };

runnerSuite(playedSubject("codex-exec", codexExecDialect.capabilities, children));

test("a further prompt in one turn goes to a process of its own, in the same conversation", async () => {
  const steps = [KEEPS, { says: "not JSON" }, { saysLater: '{"n":1}' }] as const;
  const schema = {
    type: "object",
    properties: { n: { type: "number" } },
    required: ["n"],
    additionalProperties: false,
  };
  await using t = await openTestHeddle(withSettings(steps, { outputSchema: schema }));
  const turn = await t.start("answer");
  expect((await turn.done).body).toMatchObject({ status: "completed", native: { reason: "turn.completed" } });
  const events = await t.events(turn.threadId);
  expect(ofType(events, "agent.started")).toHaveLength(2);
  expect(ofType(events, "agent.ended").map(({ end }) => end)).toEqual(["stopped", "stopped"]);
  expect(ofType(events, "agent.connected").map(({ origin }) => origin)).toEqual(["new"]);
  // Counted over the conversation by the program, and for each prompt here.
  expect(ofType(events, "model.responded").map(({ usage }) => usage.inputTokens)).toEqual([100, 100]);
  const prompts = await promptsIn(t.workspace);
  expect(prompts).toHaveLength(2);
  expect(prompts[0]?.args).not.toContain("resume");
  expect(prompts[1]?.args.slice(-2)).toEqual(["resume", "01a1ddef-663f-7992-951d-be2be3662c1a"]);
});

test("a conversation that Codex begins anew without a word is given the past as text", async () => {
  await using first = await openTestHeddle(playedOptions("codex-exec", [{ says: "the answer is 42" }], children));
  const { threadId, done } = await first.start("say something");
  expect((await done).body).toMatchObject({ status: "completed" });
  const steps = [{ forgets: true }, KEEPS, { says: "again" }] as const;
  await using second = await openTestHeddle({
    ...playedOptions("codex-exec", steps, children),
    folder: first.folder,
  });
  const turn = await second.start("and again", { thread: threadId });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const connected = ofType(await second.events(threadId), "agent.connected");
  expect(connected.map(({ origin }) => origin)).toEqual(["new", "retold"]);
  const prompts = await promptsIn(second.workspace);
  expect(prompts.at(-1)?.prompt).toContain("the answer is 42");
});

test("a failure that is told as a line is the failure of the turn, and an exit before the end is one too", async () => {
  await using full = await openTestHeddle(playedOptions("codex-exec", [{ fails: "we see high demand" }], children));
  const refused = await full.start("say something");
  const overloaded = { code: "provider.overloaded", message: "codex: we see high demand" };
  expect((await refused.done).body).toMatchObject({ status: "failed", failure: overloaded });
  await using gone = await openTestHeddle(playedOptions("codex-exec", [{ exits: 3 }], children));
  const lost = await gone.start("say something");
  const failure = { code: "runner.exited", message: expect.stringContaining("something broke inside") };
  expect((await lost.done).body).toMatchObject({ status: "failed", failure });
});

test("without a sandbox it is refused a turn in which it would have to ask", async () => {
  const settings = { sandboxMode: "danger-full-access", approvalPolicy: "on-request" } as const;
  await using t = await openTestHeddle(withSettings([{ says: "done" }], settings));
  await expect(t.start("say something")).rejects.toMatchObject({
    code: "runner.unsupported",
    details: { ability: "approvals" },
  });
});

function withSettings(steps: Parameters<typeof playedOptions>[1], settings: TestHeddleOptions["settings"]) {
  const options = playedOptions("codex-exec", steps, children);
  return { ...options, settings: { ...options.settings, ...settings } };
}

test("an envelope that is named is refused too, where it has no sandbox and the agent would have to ask", async () => {
  const settings = { envelope: "full", approvalPolicy: "on-request" } as const;
  await using t = await openTestHeddle(withSettings([KEEPS, { says: "done" }], settings));
  const turn = await t.start("say something");
  const failure = { code: "runner.unsupported", details: { ability: "approvals" } };
  expect((await turn.done).body).toMatchObject({ status: "failed", failure });
  expect(ofType(await t.events(turn.threadId), "agent.started")).toEqual([]);
});

interface Kept {
  readonly prompt: string;
  readonly args: readonly string[];
}

async function promptsIn(workspace: string): Promise<readonly Kept[]> {
  const lines = (await readFile(join(workspace, KEEPS.keeps), "utf8")).trim().split("\n");
  return lines.map((line): Kept => JSON.parse(line));
}

function ofType<T extends EventType>(events: readonly StoredEvent[], type: T): EventOf<T>[] {
  return events.map(({ body }) => body).filter((body): body is EventOf<T> => body.type === type);
}
