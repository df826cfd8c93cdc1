import { appendFile, readFile } from "node:fs/promises";
import path from "node:path";
import type { ModelServerOptions } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { start } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

const HOOK = `[[hooks]]\nevent = "SessionEnd"\ncommand = "cat >> ended.log"\n`;
const HELLO = { script: [{ text: "hello" }] };
const STALLED: ModelServerOptions = { ...HELLO, faults: () => ({ kind: "stall", at: "mid-delta" }) };

async function openHooked(options: ModelServerOptions): Promise<MockWorld> {
  const mock = await openMockWorld(options);
  await appendFile(path.join(mock.world.home, "config.toml"), HOOK);
  return mock;
}

async function ends({ world }: MockWorld): Promise<readonly string[]> {
  const text = await readFile(path.join(world.workspace, "ended.log"), "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => String(JSON.parse(line).hook_event_name));
}

const WRITE = ["--json", "-s", "workspace-write"];

test.each<[string, ModelServerOptions, readonly string[], number]>([
  ["completes", HELLO, [], 0],
  ["fails", { faults: () => ({ kind: "status", status: 400 }) }, [], 4],
  ["is out of time", STALLED, ["--timeout", "1"], 124],
  ["reaches a limit", { respond: () => ({ calls: [plan()] }) }, ["--max-turns", "1"], 6],
])("SessionEnd runs once when a turn of exec %s", async (_, options, flags, code) => {
  await using mock = await openHooked(options);
  const ran = await mock.exec([...WRITE, ...flags, "go"]);
  expect(ran).toMatchObject({ code });
  expect(await ends(mock)).toEqual(["SessionEnd"]);
  // Whatever hooks ran, the end of the turn comes after them and alone.
  const last = jsonLines(ran).filter(({ type }) => type === "turn.completed" || type === "turn.failed");
  expect(last).toHaveLength(1);
});

test("SessionEnd runs when exec is interrupted, and in a resumed thread again", async () => {
  await using mock = await openHooked({ ...HELLO, faults: [{ kind: "stall", at: "mid-delta" }] });
  await using running = start(["exec", ...WRITE, "go"], { world: mock.world, env: MOCK_KEY });
  await mock.server.arrived(0);
  await running.sees("turn.started");
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130 });
  expect(await ends(mock)).toEqual(["SessionEnd"]);
  expect(await mock.exec([...WRITE, "resume", "--last", "go on"])).toMatchObject({ code: 0 });
  expect(await ends(mock)).toEqual(["SessionEnd", "SessionEnd"]);
});

function plan(): { tool: string; args: Record<string, unknown> } {
  return { tool: "update_plan", args: { plan: [{ step: "look", status: "pending" }] } };
}
