import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openJournal } from "../sqlite/sqlite.ts";
import { bodyOfStep, EDIT, ran, started } from "../suite/envelope.samples.ts";
import { admitted, completed, created, said, testHome } from "../suite/journal.samples.ts";
import { examine } from "./examine.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const TURNS = isFull ? 500 : 100;
const CALLS = 49;
const EVENTS_OF_TURN = 200;
/** Of processor time, so that a busy machine changes nothing; as many events in it as in the full run. */
const MAX_MS = 10 * TURNS;

/** A turn of 200 events: calls with their items. */
function turn(id: string): EventBody[] {
  const calls = Array.from({ length: CALLS }, (_, nth): EventBody[] => {
    const call = {
      tool: "edit",
      args: { file_path: `src/${nth}.ts`, old_string: "a", new_string: "b".repeat(200) },
      turnId: id,
    };
    const events = ran({ ...call, callId: `${id}-${nth}` }).map(bodyOfStep);
    return [...events, said(`m${id}-${nth}`, id), said(`n${id}-${nth}`, id)];
  });
  return [admitted(id), started(id, EDIT), ...calls.flat(), said(`last ${id}`, id), completed(id)];
}

test("Verify: a clean thread of 100,000 events is verified in levels 1 to 5 in under five seconds (20,000 in one; HEDDLE_E2E_FULL=1 all)", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  await journal.append({ stream: "a", author: "system", events: [created] });
  for (let nth = 0; nth < TURNS; nth += 1)
    await journal.append({ stream: "a", author: "agent:embedded", events: turn(`t${nth}`), durability: "relaxed" });
  for (const streams of [["a"], undefined]) {
    const before = process.cpuUsage();
    const { levels, findings } = await examine(journal, { home: home.path, level: 5, streams });
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1000;
    expect(findings).toEqual([]);
    expect(levels[0]?.examined).toBeGreaterThanOrEqual(TURNS * EVENTS_OF_TURN);
    expect(levels[3]?.examined).toBe(TURNS * (CALLS + 1));
    expect(ms, streams === undefined ? "the whole record" : "one thread").toBeLessThan(MAX_MS);
  }
});
