/** Full, read-only and failing disks. On real file systems where this host allows to mount one. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { FAILPOINTS } from "@heddle/protocol/failpoints";
import { describe, expect, inject, test } from "vitest";
import { BACKEND } from "./sqlite.backend.ts";
import { startAppender } from "../suite/journal.appender.ts";
import { created, said, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "./sqlite.ts";

const run = promisify(execFile);
const SCENARIOS = join(inject("children"), "disk.scenarios.mjs");
const UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"] as const;

const canMount = spawnSync(UNSHARE[0], [...UNSHARE.slice(1), "sh", "-c", "mount -t tmpfs none /mnt"]).status === 0;
const nodeAsNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", process.execPath] as const;
const canBeNobody =
  process.getuid?.() === 0 &&
  spawnSync(nodeAsNobody[0], [
    ...nodeAsNobody.slice(1),
    "-e",
    `require("fs").readFileSync(${JSON.stringify(SCENARIOS)})`,
  ]).status === 0;

async function onTmpfs(scenario: string, size: string, ...more: readonly string[]): Promise<unknown> {
  const mount = await mkdtemp(join(tmpdir(), "heddle-mount-"));
  try {
    const script =
      'mount -t tmpfs -o size="$1" none "$2" && at="$2" && shift 2 && exec "$1" --conditions=heddle-source "$2" "$3" "$at" "$4" "$5"';
    const values = ["sh", size, mount, process.execPath, SCENARIOS, scenario, ...more];
    const { stdout } = await run(UNSHARE[0], [...UNSHARE.slice(1), "sh", "-c", script, ...values]);
    return JSON.parse(stdout);
  } finally {
    await rm(mount, { recursive: true });
  }
}

describe("a full disk", () => {
  test.runIf(canMount).each(["8m", "32m"])(
    "of %s (where a tmpfs can be mounted): refused as full, readable, a turn can still end, and it recovers by itself",
    async (size) => {
      expect(await onTmpfs("full-disk", size)).toEqual({
        hadReserve: true,
        refusal: "store.full with the path",
        again: "store.full with the path",
        readsAll: true,
        terminal: true,
        reserveAfterTerminal: false,
        full: "store.full with the path",
        freed: true,
        reserveIsBack: true,
        wholeAtTheEnd: true,
      });
    },
  );

  test.runIf(canMount)(
    "12.9: of every size from 4 to 64 MB (where a tmpfs can be mounted) lets eleven turns end, and nothing else",
    async () => {
      expect(await onTmpfs("every-size", "64m", "4", "64")).toEqual({});
    },
  );

  test("too small even for an empty store is said, not crashed on", async () => {
    await using home = await testHome();
    await using appender = startAppender({
      store: { address: home.path, backend: BACKEND },
      stream: "a",
      count: 1,
      failpoint: "journal.migrate.before-commit=enospc",
    });
    expect(await appender.ended()).toMatchObject({ code: 1, stderr: expect.stringContaining("store.full") });
    await using journal = await openJournal({ home: home.path });
    await journal.append({ stream: "a", author: "system", events: [created] });
  });

  test("at a terminal event gives up the reserve, and the event is stored", async () => {
    await using home = await testHome();
    // The tenth event ends a turn; its first attempt finds no room.
    await using appender = startAppender({
      store: { address: home.path, backend: BACKEND },
      stream: "a",
      count: 10,
      failpoint: "journal.append.before-commit@10=enospc",
    });
    expect(await appender.ended()).toMatchObject({ code: 0, refused: [] });
    expect(appender.ids).toHaveLength(10);
    expect(readdirSync(home.path)).not.toContain("reserve");
  });
});

describe("a failure at every failpoint", () => {
  const points = FAILPOINTS.filter((point) => point.startsWith("journal.") && !point.includes("migrate"));
  // Whatever stops a witness or checkpoint is handled by one function; one kind of failure shows it.
  const cases = points.flatMap((point) => {
    const actions = point.includes("append") ? (["throw", "enospc", "eio"] as const) : (["enospc"] as const);
    return actions.map((action) => [point, action] as const);
  });
  test.each(cases)("%s=%s: refused with a code or not at all, nothing acknowledged is lost", async (point, action) => {
    await using home = await testHome();
    const failpoint = `${point}@2=${action}`;
    await using appender = startAppender({
      store: { address: home.path, backend: BACKEND },
      stream: "a",
      count: 22,
      goesOn: true,
      failpoint,
    });
    const end = await appender.ended();
    expect(end).toMatchObject({ code: 0, signal: null, stderr: "" });
    // A witness or checkpoint that cannot be written takes nothing back.
    const refusals = point.includes("append") ? [action === "enospc" ? "store.full" : "store.failed"] : [];
    expect(end.refused).toEqual(refusals);
    expect(appender.ids).toHaveLength(22 - refusals.length);
    await using journal = await openJournal({ home: home.path });
    const stored = (await journal.read({ after: 0 })).map((event) => event.id);
    expect(appender.ids.filter((id) => !stored.includes(id))).toEqual([]);
    expect(stored).toHaveLength(point.endsWith("after-commit") ? 22 : appender.ids.length);
    expect(await journal.verify()).toMatchObject({ damage: [] });
  });
});

describe("a store that cannot be written", () => {
  const expected = {
    isWritable: false,
    damage: "none",
    notices: ["read-only"],
    events: 2,
    threads: 1,
    append: "store.read-only with the path",
    unchanged: true,
  };

  test.runIf(canMount)("because of a read-only mount (where one can be made) is still read", async () => {
    expect(await onTmpfs("read-only", "8m")).toEqual(expected);
  });

  test.runIf(canMount)("because of a read-only mount, with its newest events in the WAL, is still read", async () => {
    expect(await onTmpfs("read-only-wal", "8m")).toEqual(expected);
  });

  test.runIf(canBeNobody)(
    "because it is closed to this user (tried as root by another one) is refused with the path",
    async () => {
      await using home = await testHome();
      await (await openJournal({ home: home.path }))[Symbol.asyncDispose]();
      chmodSync(join(home.path, ".."), 0o755);
      expect(await asNobody(home.path)).toEqual({ code: "store.read-only", namesPath: true });
    },
  );

  test.runIf(canBeNobody)(
    "because it belongs to somebody who lets others read (tried as root by another one) is read",
    async () => {
      await using home = await testHome();
      {
        await using journal = await openJournal({ home: home.path });
        await journal.append({ stream: "a", author: "system", events: [created, said("x")] });
      }
      for (const [path, mode] of [
        ["..", 0o755],
        [".", 0o755],
        ["heddle.db", 0o644],
      ] as const) {
        chmodSync(join(home.path, path), mode);
      }
      expect(await asNobody(home.path)).toEqual({ events: 2, isWritable: false });
      execFileSync("test", ["!", "-e", join(home.path, "heddle.db-wal")]);
    },
  );

  test.runIf(canBeNobody)(
    "because its folder cannot be made (tried as root by another one) is refused with the path",
    async () => {
      await using home = await testHome();
      expect(await asNobody(join(home.path, "deep"))).toEqual({ code: "store.read-only", namesPath: true });
    },
  );

  test("V15: because a file is in its place is refused with the path, and nothing is kept in memory instead", async () => {
    await using home = await testHome();
    await writeFile(home.path, "not a folder");
    await expect(openJournal({ home: home.path })).rejects.toMatchObject({
      code: "store.failed",
      message: expect.stringContaining(home.path),
    });
  });

  async function asNobody(path: string): Promise<unknown> {
    const [command, ...rest] = nodeAsNobody;
    const { stdout } = await run(command, [...rest, "--conditions=heddle-source", SCENARIOS, "foreign-home", path]);
    return JSON.parse(stdout);
  }
});

test("loading SQLite says nothing on stderr", async () => {
  await using home = await testHome();
  await using appender = startAppender({ store: { address: home.path, backend: BACKEND }, stream: "a", count: 1 });
  expect(await appender.ended()).toMatchObject({ code: 0, stderr: "" });
});
