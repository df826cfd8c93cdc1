import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHarness, openTasks } from "../index.ts";
import { harnessOptions, openTestHarness, shell } from "../../test/test-harness.ts";

/** A clock on which every wait is over at the next look. */
function fastClock(): () => number {
  let ahead = 0;
  return () => Date.now() + (ahead += 3_600_000);
}

const TRIES = 8;

test("14: a task whose beginning cannot be stored is tried a bounded number of times, whatever its retries, and then paused with the reason", async () => {
  await using t = await openTestHarness();
  const now = fastClock();
  await using _worker = await openHarness({ ...harnessOptions(t.heddle, "/dev/null/home", {}), now });
  const { id } = await t.add({ retries: { max: 0 }, checks: [{ kind: "file-exists", path: "done" }] });
  const waiting = await t.until(id, ({ wait }) => wait !== undefined);
  expect(waiting.wait).toMatchObject({ cause: "store", message: expect.stringContaining("store.") });
  const paused = await t.until(id, ({ state }) => state === "paused");
  expect(paused).toMatchObject({ faults: TRIES - 1, retries: 0 });
  expect(paused.reason).toContain(`(tried ${TRIES} times); when that is fixed, run: heddle task resume ${id}`);
  expect(await t.of(id, "task.paused")).toMatchObject([{ cause: "fault" }]);
  const waits = (await t.of(id, "task.retried")).map(({ notBefore = 0 }) => notBefore);
  expect(waits.every((until) => until > 0)).toBe(true);
});

const UNSHARE = ["--user", "--map-root-user", "--mount"] as const;
const canMount = spawnSync("unshare", [...UNSHARE, "sh", "-c", "mount -t tmpfs none /mnt"]).status === 0;

test.runIf(canMount)(
  "14: work that cannot be judged because the home is full ends in a pause, and a resume judges it without the agent (needs user namespaces)",
  async () => {
    const now = fastClock();
    await using t = await openTestHarness({
      script: [{ calls: [shell("head -c 6000000 /dev/urandom > done")] }, { text: "TASK COMPLETE" }],
    });
    await using disk = await openSmallDisk(join(t.folder, "disk"), 3);
    const home = join(disk.seen, "home");
    await mkdir(home);
    await using _worker = await openHarness({ ...harnessOptions(t.heddle, home, {}), now });
    const { id } = await t.add({ retries: { max: 0 }, checks: [{ kind: "file-exists", path: "done" }] });
    const paused = await t.until(id, ({ state }) => state === "paused");
    expect(paused.reason).toContain("no space left for a copy of the workspace");
    expect(await t.of(id, "task.retried")).toHaveLength(TRIES - 1);
    await writeFile(join(t.workspace, "done"), "small");
    await openTasks({ journal: t.heddle.journal, home }).as("user:owner").resume(id);
    expect(await t.until(id, ({ state }) => state === "verified")).toMatchObject({ round: 1 });
  },
);

/** A tmpfs in a mount namespace of its own, kept by a process that waits; seen through that process's root. */
async function openSmallDisk(folder: string, megabytes: number): Promise<AsyncDisposable & { readonly seen: string }> {
  await mkdir(folder);
  const script = 'mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec cat';
  const keeper = spawn("unshare", [...UNSHARE, "sh", "-c", script, "sh", `${megabytes}m`, folder], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(keeper, "close");
  await Promise.race([once(keeper.stdout, "data"), ended]);
  return {
    seen: join(`/proc/${keeper.pid}/root`, folder),
    async [Symbol.asyncDispose]() {
      keeper.stdin.end();
      await ended;
    },
  };
}
