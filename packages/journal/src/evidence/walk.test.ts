import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { canonical } from "@heddle/protocol";
import { expect, test } from "vitest";
import { linkText, type Link } from "../record/chain.ts";
import { connect, type Connection } from "../sqlite/driver.ts";
import { rowsOf } from "../sqlite/stored-rows.ts";
import { created, said, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "../sqlite/sqlite.ts";
import type { RowRange } from "./stored-rows.ts";
import { joinRanges, walkRange, type Walk, type WalkedRange } from "./walk.ts";

const author = "system";
const EVENTS = 30;

/** Three streams whose events lie between each other, the last of them deleted. */
async function fill(home: string): Promise<void> {
  await using journal = await openJournal({ home });
  for (let nth = 0; nth < EVENTS - 1; nth += 1) {
    const stream = ["a", "b", "c"][nth % 3] ?? "";
    await journal.append({ stream, author, events: [nth < 3 ? created : said(`${nth}`)] });
  }
  await journal.purge({ stream: "c", author, reason: "asked for" });
}

function tamper(home: string, sql: string): void {
  using db = new DatabaseSync(join(home, "heddle.db"));
  for (const row of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all()) {
    db.exec(`DROP TRIGGER ${String(row["name"])}`);
  }
  db.exec(sql);
}

async function walkIn(connection: Connection, size: number): Promise<Walk> {
  const stored = rowsOf(connection);
  const walked: WalkedRange[] = [];
  for (let after = 0; after < EVENTS; after += size) {
    const range: RowRange = after + size >= EVENTS ? { after } : { after, upTo: after + size };
    const steps = walkRange(stored, range);
    let step = await steps.next();
    while (step.done !== true) step = await steps.next();
    walked.push(step.value);
  }
  return joinRanges(stored, walked);
}

const swap = (one: number, other: number): string =>
  `UPDATE events SET position = -1 WHERE position = ${one}; UPDATE events SET position = ${one} WHERE position = ${other};
   UPDATE events SET position = ${other} WHERE position = -1`;

test.each([
  ["nothing", "SELECT 1", 0],
  ["a body", `UPDATE events SET body = replace(body, '12', '13') WHERE position = 13`, 1],
  ["a body without a deletion", "UPDATE events SET body = NULL WHERE position = 13", 1],
  ["an author", "UPDATE events SET author = 'user' WHERE position = 14", 1],
  ["a time", "UPDATE events SET at = at + 1 WHERE position = 16", 1],
  ["a link", "UPDATE events SET prev_hash = hash WHERE position = 10", 1],
  ["a row in the middle", "DELETE FROM events WHERE position = 11", 1],
  ["the first row", "DELETE FROM events WHERE position = 2", 1],
  ["the order of two rows of a stream", swap(10, 13), 2],
  ["a position", "UPDATE events SET position = 1013 WHERE position = 28", 1],
  ["a stream's name", "UPDATE events SET stream = 'd' WHERE position = 28", 1],
])("12.14: %s changed is seen alike in one range and in many, wherever they meet", async (_what, sql, atLeast) => {
  await using home = await testHome();
  await fill(home.path);
  tamper(home.path, sql);
  const connection = await connect(join(home.path, "heddle.db"), "read-only");
  const whole = await walkIn(connection, EVENTS);
  expect(whole.damage.length).toBeGreaterThanOrEqual(atLeast);
  for (const size of [1, 2, 3, 4, 5, 7, 11, 15, 29]) {
    const { damage, ...counts } = await walkIn(connection, size);
    const { damage: _damage, ...expected } = whole;
    expect(counts).toEqual(expected);
    expect(damage.length > 0).toBe(whole.damage.length > 0);
    if (atLeast < 2) expect(damage).toEqual(whole.damage);
  }
  connection.close();
});

test("12.14: a link is hashed in its canonical form, whatever its texts hold", () => {
  const odd = [
    "plain",
    "",
    'quo"te',
    "back\\slash",
    "\u0000\n",
    "ü€😀",
    "\ud800 alone",
    "a b",
    "agent:x/y.z",
    "\u2028",
  ];
  for (const text of odd) {
    const link: Link = {
      id: text,
      stream: `s${text}`,
      version: 7,
      at: 1_794_915_136_563,
      author: `${text}x`,
      type: text,
      v: 1,
      bodyHash: "ab".repeat(32),
      prevHash: text,
    };
    expect(linkText(link)).toBe(canonical({ chain: 1, ...link }));
  }
});
