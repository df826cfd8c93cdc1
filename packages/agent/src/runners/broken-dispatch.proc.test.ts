import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { examine, resultOf } from "@heddle/journal/verification";
import { NO_USAGE, type ModelToolCall } from "@heddle/protocol";
import { toolsFor } from "@heddle/tools";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";
import { EVERY_ABILITY } from "./abilities.ts";
import { runCalls } from "./calls.ts";
import { OWN_HEALTH } from "./own-health.ts";
import type { Runner, TurnIo, TurnRequest } from "./runner.ts";

const CALL: ModelToolCall = {
  kind: "toolCall",
  callId: "call_1",
  name: "write",
  shape: "json",
  input: JSON.stringify({ file_path: "made.txt", content: "by a broken wall\n" }),
};

/** Its turns make one call, in whatever way. */
function runnerThat(calls: (turn: TurnRequest, io: TurnIo) => Promise<void>): Runner {
  return {
    name: "embedded",
    capabilities: EVERY_ABILITY,
    probe: () => Promise.resolve(OWN_HEALTH),
    check: () => Promise.resolve(),
    async run(turn, io) {
      await calls(turn, io);
      return { kind: "completed", spent: { usage: NO_USAGE } };
    },
  };
}

function offered(turn: TurnRequest, io: TurnIo, id: string) {
  const envelope = turn.sandboxContext.named(id);
  const { policy } = io;
  const hops = { ...policy.hops, current: { ...policy.hops.current, envelope } };
  return { turn, io: { ...io, policy: { ...policy, hops } }, toolset: toolsFor("anthropic", envelope, {}) };
}

const whole = runnerThat((turn, io) => runCalls([CALL], offered(turn, io, "careful")));
/** Judges a call by a wider envelope than the one its thread is in. */
const broken = runnerThat((turn, io) => runCalls([CALL], offered(turn, io, "edit")));
/** Does not even say that there was a call. */
const silent = runnerThat(({ workspace }) => writeFile(join(workspace, "made.txt"), "by nobody\n"));

test.each([
  ["a whole one lets nothing through", whole, false, []],
  [
    "one that lets a call through",
    broken,
    true,
    ["path_outside_envelope", "tool_outside_envelope", "unexplained_change"],
  ],
  ["one that acts without a word", silent, true, ["unexplained_change"]],
] as const)(
  "Verify: a broken dispatch is found by what it left on record: %s",
  async (_name, runner, isMade, codes) => {
    await using t = await openTestHeddle({ runner });
    await mkdir(join(t.home, "envelopes"), { recursive: true });
    await writeFile(join(t.home, "envelopes", "careful.yaml"), "id: careful\nextends: explore\nmanifest: true\n");
    const turnIn = async (envelope: string, thread: string | undefined): Promise<string> => {
      const { threadId, done } = await t.heddle.as("user:owner").startTurn({
        thread: thread ?? { workspace: t.workspace, origin: "test" },
        input: [{ type: "text", text: "write" }],
        settings: { ...t.settings, envelope },
      });
      expect((await done).body).toMatchObject({ status: "completed" });
      return threadId;
    };
    const threadId = await turnIn("careful", undefined);
    expect(existsSync(join(t.workspace, "made.txt"))).toBe(isMade);
    await turnIn("edit", threadId);
    const { findings, levels } = await examine(t.heddle.journal, { home: t.home, level: 5, streams: [threadId] });
    expect([...new Set(findings.map(({ code }) => code))].toSorted()).toEqual(codes);
    expect(resultOf(findings)).toBe(isMade ? "violation" : "clean");
    expect(levels.at(-1)).toMatchObject({ level: 5, examined: 1 });
  },
);
