/** The checker finds what it is there to find: each kind of fault, planted in a copy of a clean home. */
import { cp } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openJournal, type Journal } from "@heddle/journal";
import { NO_USAGE, type EventBody, type EventOf, type StoredEvent } from "@heddle/protocol";
import { beforeAll, afterAll, expect, test } from "vitest";
import { checkHome, NOTHING_FOUND, type Acknowledged } from "./checker.ts";
import { execArgs, jsonLines, openWorld, run, type World } from "./world.ts";

let world: World;
let threadId = "";

beforeAll(async () => {
  world = await openWorld();
  const script = await world.file(
    "script.json",
    JSON.stringify([{ calls: [{ tool: "bash", args: { command: "echo one >> effects.log" } }] }, { text: "done" }]),
  );
  const ran = await run(execArgs("--script", script), { world });
  expect(ran).toMatchObject({ code: 0 });
  threadId = jsonLines(ran.stdout)[0]?.thread_id ?? "";
});

afterAll(() => world[Symbol.asyncDispose]());

test("a clean home gives no findings", async () => {
  const effects = await world.effects();
  expect(effects).toEqual(["one"]);
  expect(await checkHome(await copyOfHome("clean"), { acknowledged: [{ threadId }], effects })).toEqual(NOTHING_FOUND);
});

test("an acknowledged input that is not there is found", async () => {
  const acknowledged: Acknowledged[] = [{ threadId }, { threadId, clientId: "c1" }, { threadId: "another" }];
  const { lostInputs } = await checkHome(await copyOfHome("lost"), { acknowledged, effects: [] });
  expect(lostInputs).toEqual([`{"threadId":"${threadId}","clientId":"c1"}`, `{"threadId":"another"}`]);
});

test("an effect that happened twice is found", async () => {
  const found = await checkHome(await copyOfHome("twice"), { acknowledged: [], effects: ["one", "two", "one"] });
  expect(found).toEqual({ ...NOTHING_FOUND, repeatedEffects: ["one"] });
});

test("a second terminal event is found", async () => {
  const found = await checkWith("terminal", (events) => [bodyOf(events, "turn.completed")]);
  expect(found).toEqual({
    ...NOTHING_FOUND,
    turnsWithoutOneEnd: [expect.stringContaining("has 2 ends")],
    damage: [expect.stringContaining("ended_twice")],
  });
});

test("an item that ends twice, and one that never ends, are found", async () => {
  const found = await checkWith("items", (events) => {
    const { item, turnId } = bodyOf(events, "item.completed");
    const hanging: EventBody = { type: "item.started", v: 1, turnId: "t2", item: { ...item, id: "hanging" } };
    return [{ type: "item.completed", v: 1, turnId, item }, admitted(events, "t2"), hanging, ended("t2")];
  });
  expect(found.itemsWithoutOneEnd).toEqual([
    expect.stringContaining("was completed twice"),
    "hanging was never completed",
  ]);
});

test("an intent that nobody settled is found", async () => {
  const found = await checkWith("intent", (events) => [
    admitted(events, "t2"),
    { ...bodyOf(events, "tool.intended"), turnId: "t2", itemId: "left" },
    ended("t2"),
  ]);
  expect(found).toEqual({
    ...NOTHING_FOUND,
    unsettledIntents: ["left was settled 0 times"],
    damage: [expect.stringContaining("spec_unknown"), expect.stringContaining("unfinished_call")],
  });
});

test("a client id that started two turns is found", async () => {
  const found = await checkWith("client", (events) => [
    { ...admitted(events, "t2"), clientId: "same" },
    ended("t2"),
    { ...admitted(events, "t3"), clientId: "same" },
    ended("t3"),
  ]);
  expect(found).toEqual({ ...NOTHING_FOUND, repeatedTurns: [`${threadId} same`] });
});

test("a row that was deleted or changed behind the journal's back is found", async () => {
  for (const sql of [
    "DELETE FROM events WHERE version = 4",
    "UPDATE events SET body = replace(body, 'done', 'gone') WHERE type = 'item.completed'",
    "DELETE FROM events WHERE version = (SELECT max(version) FROM events)",
  ]) {
    const home = await copyOfHome(`sql-${sql.length}`);
    const database = new DatabaseSync(path.join(home, "heddle.db"));
    // The store guards itself against such statements; whoever has the file can take the guard away.
    for (const { name } of database.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all()) {
      database.exec(`DROP TRIGGER ${String(name)}`);
    }
    expect(database.prepare(sql).run().changes, sql).toBeGreaterThan(0);
    database.close();
    const { damage } = await checkHome(home, { acknowledged: [], effects: [] });
    expect(damage.length, sql).toBeGreaterThan(0);
  }
});

async function copyOfHome(name: string): Promise<string> {
  const copy = path.join(world.root, `home-${name}`);
  await cp(world.home, copy, { recursive: true });
  return copy;
}

type Plant = (events: readonly StoredEvent[]) => readonly EventBody[];

/** Appends through the journal itself, so that the chain is whole and only the story is wrong. */
async function checkWith(name: string, plant: Plant): ReturnType<typeof checkHome> {
  const home = await copyOfHome(name);
  {
    await using journal: Journal = await openJournal({ home });
    const events = await journal.read({ stream: threadId, after: 0 });
    await journal.append({ stream: threadId, author: "system", events: plant(events) });
  }
  return checkHome(home, { acknowledged: [{ threadId }], effects: [] });
}

function bodyOf<T extends EventBody["type"]>(events: readonly StoredEvent[], type: T): EventOf<T> {
  const isOf = (body: EventBody): body is EventOf<T> => body.type === type;
  const found = events.map(({ body }) => body).find(isOf);
  if (found === undefined) throw new Error(`there is no ${type}`);
  return found;
}

function admitted(events: readonly StoredEvent[], turnId: string): EventOf<"turn.admitted"> {
  return { ...bodyOf(events, "turn.admitted"), turnId };
}

function ended(turnId: string): EventBody {
  return { type: "turn.completed", v: 1, turnId, status: "completed", usage: NO_USAGE, durationMs: 1 };
}
