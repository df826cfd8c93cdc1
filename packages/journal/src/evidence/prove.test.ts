import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openJournal } from "../sqlite/sqlite.ts";
import { completed, created, said, testHome } from "../suite/journal.samples.ts";

test("14.5: what a thread goes on from is proven, whatever lies before it; verify finds the rest", async () => {
  await using home = await testHome();
  {
    await using journal = await openJournal({ home: home.path });
    const events = Array.from({ length: 60 }, (_, nth) => said(`${nth}`));
    await journal.append({ stream: "a", author: "system", events: [created, ...events, completed("t")] });
    expect(await journal.prove("a")).toBeUndefined();
  }
  {
    using db = new DatabaseSync(join(home.path, "heddle.db"));
    for (const row of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all()) {
      db.exec(`DROP TRIGGER ${String(row["name"])}`);
    }
    db.exec("UPDATE events SET body = replace(body, 'item', 'itex') WHERE stream = 'a' AND version = 20");
  }
  await using journal = await openJournal({ home: home.path });
  expect(await journal.prove("a", 20)).toBeUndefined();
  expect(await journal.prove("a", 19)).toMatchObject({ kind: "body-altered", version: 20 });
  expect(await journal.prove("a")).toMatchObject({ version: 20 });
  expect((await journal.verify("a")).damage).toMatchObject([{ kind: "body-altered", version: 20 }]);
});
