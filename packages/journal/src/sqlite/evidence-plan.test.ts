/** V6: each question walks an index; what SQLite itself says of its plan is looked at. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { EvidenceQuery } from "@heddle/protocol";
import { expect, test } from "vitest";
import { fillEvidence } from "../suite/evidence.samples.ts";
import { testHome } from "../suite/journal.samples.ts";
import { answer, connect } from "./driver.ts";
import { openJournal } from "./sqlite.ts";
import { planOf } from "../sql/queries/evidence-plan.ts";
import { counting, probe, walk, type DriverName } from "../sql/queries/evidence-sql.ts";
import { SQLITE } from "./dialect.ts";

const ALONE: readonly (readonly [DriverName, EvidenceQuery])[] = [
  ["subject", { subject: { type: "file", id: "s1" } }],
  ["subjectType", { subject: { type: "file" } }],
  ["ref", { ref: { type: "file", id: "/src/1.ts" } }],
  ["tag", { tags: ["red"] }],
  ["tag", { anyTag: ["red", "blue"] }],
  ["stream", { thread: ["thread-1", "thread-2"] }],
  ["turn", { turn: "turn-1" }],
  ["task", { task: "task_1" }],
  ["author", { author: "system" }],
  ["type", { type: "tool.*" }],
  ["claim", { claim: ["goal", "step"] }],
  ["envelope", { envelope: "hash-1" }],
  ["reply", { replyTo: "evt_1" }],
  ["stream", { forkOf: "thread-1" }],
  ["words", { text: "alpha beta" }],
  ["all", { since: 1 }],
  ["all", { before: 2 ** 45 }],
  ["all", {}],
];

/** A walk of a whole table. An index of words calls its look-up a scan, and what a limit has left is not a table. */
const WHOLE = /\bSCAN (?!.*VIRTUAL TABLE INDEX )(?!CONSTANT ROW|\(subquery|newest)/;

test("V6: every filter alone walks its own index, in the order of positions, and none a whole table", async () => {
  await using home = await testHome();
  {
    let at = 0;
    await using journal = await openJournal({ home: home.path, now: () => at });
    await fillEvidence(journal, { entries: 200, setTime: (now) => (at = now) });
  }
  const connection = await connect(join(home.path, "heddle.db"), "read-only");
  using db = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
  const planned = (sql: string): string[] =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((row) => String(row["detail"]));
  try {
    for (const [driver, query] of ALONE) {
      expect({ query, driver: answer(connection, planOf(query, "list", SQLITE))?.driver }).toEqual({ query, driver });
      for (const sql of [
        walk(driver, "DESC", SQLITE),
        walk(driver, "ASC", SQLITE),
        counting(driver, SQLITE),
        probe(driver, SQLITE),
      ]) {
        const steps = planned(sql);
        expect(steps.filter((step) => WHOLE.test(step) || step.includes("TEMP B-TREE"))).toEqual([]);
        expect(steps.length).toBeGreaterThan(0);
      }
    }
  } finally {
    connection.close();
  }
});

test("V6: of several filters the rarest is walked", async () => {
  await using home = await testHome();
  let at = 0;
  await using journal = await openJournal({ home: home.path, now: () => at });
  await fillEvidence(journal, { entries: 2_000, setTime: (now) => (at = now) });
  const connection = await connect(join(home.path, "heddle.db"), "read-only");
  const driver = (query: EvidenceQuery): string | undefined =>
    answer(connection, planOf(query, "list", SQLITE))?.driver;
  expect(driver({ author: "system", turn: "turn-1" })).toBe("turn");
  expect(driver({ author: "system", text: "alpha" })).toBe("words");
  expect(driver({ replyTo: "evt_none", text: "alpha" })).toBe("reply");
  connection.close();
});
