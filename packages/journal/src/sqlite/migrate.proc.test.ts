import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { putSchema1, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "./sqlite.ts";

const OPEN = `
  const { openJournal } = await import(process.argv[1]);
  await openJournal({ home: process.argv[2] });
`;

/** Opens the store in a process of its own. */
function openElsewhere(home: string, failpoint: string): ReturnType<typeof spawnSync> {
  const index = join(import.meta.dirname, "..", "index.ts");
  return spawnSync(process.execPath, ["--conditions=heddle-source", "--input-type=module", "-e", OPEN, index, home], {
    env: { ...process.env, HEDDLE_FAILPOINT: failpoint },
    timeout: 90_000,
  });
}

test.each([
  ["kill", { signal: "SIGKILL" }],
  ["enospc", { status: 1 }],
] as const)(
  "a migration struck by %s before its end leaves the old schema, and the next open finishes it",
  async (strike, end) => {
    await using home = await testHome();
    putSchema1(home.path);
    expect(openElsewhere(home.path, `journal.migrate.before-commit=${strike}`)).toMatchObject(end);
    {
      using db = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
      expect(db.prepare("PRAGMA user_version").get()).toMatchObject({ user_version: 1 });
      expect(db.prepare("SELECT count(*) AS n FROM threads").get()).toMatchObject({ n: 3 });
    }
    expect(existsSync(join(home.path, "heddle.db.schema-1"))).toBe(true);
    await using journal = await openJournal({ home: home.path });
    expect(await journal.threads.list({ limit: 9 })).toMatchObject([{ preview: "do t-c1" }, {}, {}]);
    expect((await journal.verify()).damage).toEqual([]);
  },
);
