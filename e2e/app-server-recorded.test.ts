/**
 * Heddle's app-server beside what Codex's did when it was recorded (conformance/recorded/app-*.jsonl): every scenario, message by
 * message and field by field, without Codex. Each must come out the same, or differ as conformance/app-server/differences says.
 * By default the scenarios of one client share two processes, because to load the program costs more than they do.
 */
import { join } from "node:path";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { judge, leftOver, type Verdict } from "../conformance/app-server/judge.ts";
import type { Played, ScenarioSeen } from "../conformance/app-server/play.ts";
import { readSeen } from "../conformance/app-server/recorded.ts";
import { playAll } from "../conformance/app-server/run.ts";
import type { Scenario } from "../conformance/app-server/scenario.ts";
import { SCENARIOS } from "../conformance/app-server/scenarios.ts";
import { startProcess } from "../conformance/app-server/start.ts";
import { heddle } from "../conformance/program.ts";
import { openAppServerHost } from "./app-server-host.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";

/** Not one that listens at a socket, or is killed. */
function canShare({ door, moves }: Scenario): boolean {
  return !isFull && door === undefined && moves.every((move) => !("restart" in move));
}

type Messages = ScenarioSeen["received"][number]["messages"];

function changed(seen: ScenarioSeen, change: (messages: Messages) => Messages): ScenarioSeen {
  return { ...seen, received: seen.received.map(({ client, messages }) => ({ client, messages: change(messages) })) };
}

describe("what app-server of Codex sent, Heddle's sends", () => {
  let played: ReadonlyMap<string, Played> = new Map();
  const verdicts: Verdict[] = [];

  beforeAll(async () => {
    const program = join(inject("children"), "app-servers-in-child.mjs");
    await using first = openAppServerHost(program);
    await using second = openAppServerHost(program);
    const shared = [first, second];
    const startOf = (scenario: Scenario, lane: number) =>
      (canShare(scenario) ? shared[lane]?.start : undefined) ?? startProcess(heddle);
    played = await playAll(heddle, SCENARIOS, { startOf });
  }, 300_000);

  test.each([
    { what: "a lost message", change: (all: Messages) => all.filter(({ method }) => method !== "turn/started") },
    { what: "one message more", change: (all: Messages) => [...all, { method: "turn/started", params: {} }] },
    { what: "another order", change: (all: Messages) => all.toReversed() },
    {
      what: "another word",
      change: (all: Messages): Messages => JSON.parse(JSON.stringify(all).replaceAll('"Hello."', '"Bye."')),
    },
  ])("$what is found", ({ change }) => {
    const [scenario, codex] = [SCENARIOS.find(({ id }) => id === "hello"), readSeen("hello")];
    if (scenario === undefined) throw new Error("there is no such scenario");
    expect(judge(scenario, { codex, heddle: codex }).problems).toEqual([]);
    expect(judge(scenario, { codex, heddle: changed(codex, change) }).problems).not.toEqual([]);
  });

  test.each(SCENARIOS)("$id: $about", (scenario) => {
    const ours = played.get(scenario.id);
    if (ours === undefined) throw new Error("the scenario was not played");
    const verdict = judge(scenario, { codex: readSeen(scenario.id), heddle: ours.seen });
    verdicts.push(verdict);
    expect(verdict.problems).toEqual([]);
  });

  test("no difference is listed that no longer happens", () => {
    expect(leftOver(verdicts)).toEqual([]);
  });
});
