/** Instructions of owner and client reach the model on every wire, and stay through everything that happens to a thread. */
import { startModelServer, type HttpWire } from "@heddle/models/testing";
import type { StartTurn } from "../heddle.ts";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";
import { steerOnce } from "../turns/sent.ts";

const MODELS: Readonly<Record<HttpWire, string>> = {
  "openai-responses": "gpt-5.5",
  "openai-chat": "some-local-model",
  anthropic: "claude-sonnet-5-5",
  gemini: "gemini-3.8-flash",
};
const SECRET = `ghp_${"a1B2".repeat(9)}`;
const INSTRUCTIONS = { baseInstructions: "THE BASE.", developerInstructions: `DEVELOPERS SAY ${SECRET}.` };
const CONTEXT = [
  { name: "screen", kind: "application", text: "SCREEN" },
  { name: "page", kind: "untrusted", text: "PAGE" },
] as const;

async function ask(t: TestHeddle, thread: StartTurn["thread"], context: StartTurn["context"] = CONTEXT) {
  const input = [{ type: "text" as const, text: "go" }];
  const turn = await t.heddle.as("user:owner").startTurn({ thread, input, context, settings: t.settings });
  await turn.done;
  return turn.threadId;
}

test.each(Object.keys(MODELS) as HttpWire[])(
  "over %s: instructions and context are sent in a first turn, a resumed one, a fork and after a compaction",
  async (wire) => {
    await using server = await startModelServer({ respond: () => ({ text: `answer ${"a".repeat(6000)}` }) });
    const options = {
      providers: [server.provider(wire)],
      settings: { provider: "test", model: MODELS[wire], serviceTier: "flex", ...INSTRUCTIONS },
    };
    await using t = await openTestHeddle(options);
    const threadId = await ask(t, { workspace: t.workspace, origin: "test" });
    await t.heddle[Symbol.asyncDispose]();
    await using resumed = await openTestHeddle({ ...options, folder: t.folder });
    await ask(resumed, threadId);
    await ask(resumed, { fork: { threadId, workspace: t.workspace, origin: "test" } });
    const before = server.requests.length;
    await (
      await resumed.heddle.as("user:owner").compact(threadId, { ...resumed.settings, contextTokens: 10_000 })
    ).done;
    await ask(resumed, threadId);
    const sent = server.requests.map(({ body }) => JSON.stringify(body));
    const turns = [...sent.slice(0, before), sent.at(-1) ?? ""];
    expect(turns).toHaveLength(4);
    for (const body of turns) {
      expect(times(body, "THE BASE.")).toBe(1);
      expect(times(body, "DEVELOPERS SAY")).toBe(1);
      expect(times(body, "SCREEN")).toBe(1);
      expect(times(body, "PAGE")).toBe(1);
      expect(body).not.toContain("You are a coding agent run by Heddle");
      // As it is stored, in the first request too.
      expect(body).not.toContain(SECRET);
    }
    const notices = (await resumed.events(threadId)).flatMap(({ body }) =>
      body.type === "item.completed" && body.item.type === "notice" ? [body.item.code] : [],
    );
    expect(notices).toEqual(wire === "openai-responses" ? [] : ["model.setting"]);
  },
);

function times(text: string, word: string): number {
  return text.split(word).length - 1;
}

test("context beside steering is sent before it", async () => {
  const steered = Promise.withResolvers<void>();
  await using server = await startModelServer({
    async respond({ answers }) {
      await steered.promise;
      return { text: answers === 0 ? "one" : "two" };
    },
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const turn = await t.start("go");
  const input = [{ type: "text" as const, text: "STEERED" }];
  await steerOnce(t.heddle.journal, turn.turnId, { by: "user:owner", context: CONTEXT, input });
  steered.resolve();
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const body = JSON.stringify(server.requests.at(-1)?.body);
  expect(body).toMatch(/SCREEN.*PAGE.*STEERED/);
});
