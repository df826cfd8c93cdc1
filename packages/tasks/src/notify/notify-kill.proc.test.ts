import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { openReceiver } from "../../test/receiver.ts";
import { eventually, openTestStore } from "../../test/test-store.ts";

const CHILD = join(inject("children"), "notify-in-child.mjs");
const TASKS = 8;

describe("86: a notifier that is killed loses nothing", () => {
  test.for([
    { failpoint: "notify.after-queue", again: 0 },
    { failpoint: "notify.after-send", again: 1 },
    { failpoint: "notify.before-settle", again: 1 },
  ])("at $failpoint, at any of the first events", async ({ failpoint, again }) => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    const start = (strike: string | undefined) => {
      const child = spawn(process.execPath, [CHILD, store.folder, receiver.url.href], {
        env: {
          PATH: process.env["PATH"],
          NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
          HEDDLE_FAILPOINT: strike,
        },
        stdio: ["ignore", "pipe", "inherit"],
      });
      const begun = once(child.stdout, "data");
      const ended = once(child, "exit");
      return { child, begun, ended };
    };
    // The sink begins before anything happens; then each process dies at another event than the one before.
    const first = start(`${failpoint}@1=kill`);
    await first.begun;
    const ids: string[] = [];
    for (let n = 0; n < TASKS; n += 1) ids.push(await store.happen([]));
    expect(await first.ended).toEqual([null, "SIGKILL"]);
    let kills = 1;
    for (const at of [1, 2]) {
      expect(await start(`${failpoint}@${at}=kill`).ended).toEqual([null, "SIGKILL"]);
      kills += 1;
    }
    const last = start(undefined);
    const isQuiet = async (): Promise<true | undefined> => {
      const delivered = await store.journal.notifications.page({ state: "delivered", limit: 100 });
      return delivered.length === TASKS ? true : undefined;
    };
    await eventually("everything is delivered", isQuiet);
    last.child.kill("SIGKILL");
    await last.ended;
    const got = receiver.received.map(({ body }) => JSON.parse(body).task_id as string);
    expect(got.filter((id, index) => got.indexOf(id) === index)).toEqual(ids);
    // At least once: only what was sent when it died is sent again, with the same id.
    expect(got.length).toBe(TASKS + again * kills);
    expect(new Set(receiver.received.map(({ headers }) => headers["x-heddle-delivery"])).size).toBe(TASKS);
  });
});
