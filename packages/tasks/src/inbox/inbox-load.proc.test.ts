import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import { eventually, openTestStore, type TestStore } from "../../test/test-store.ts";
import { openTasks } from "../open-tasks.ts";
import { openInbox } from "./open-inbox.ts";

const CHILD = new URL("../../test/inbox-in-child.ts", import.meta.url).pathname;

async function tasksOf({ journal }: TestStore, limit: number): Promise<readonly TaskRecord[]> {
  return (await journal.tasks.page({ limit: limit + 1 })).toReversed();
}

function start(
  store: TestStore,
  folder: string,
  failpoint?: string,
): { readonly ended: Promise<unknown[]>; kill(): void } {
  const child = spawn(process.execPath, ["--conditions=heddle-source", CHILD, store.folder, folder], {
    env: { PATH: process.env["PATH"], ...(failpoint === undefined ? {} : { HEDDLE_FAILPOINT: failpoint }) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  return { ended: once(child, "exit"), kill: () => void child.kill("SIGKILL") };
}

describe("73: an inbox that is killed makes no second task and loses none", () => {
  test.for(["inbox.after-claim", "inbox.after-add"])("at %s, time after time", async (failpoint) => {
    await using store = await openTestStore();
    const [folder, workspace] = [path.join(store.folder, "inbox"), path.join(store.folder, "work")];
    await mkdir(folder);
    await mkdir(workspace);
    for (let n = 0; n < 6; n += 1) {
      await writeFile(path.join(folder, `${n}.md`), `---\nworkspace: ${workspace}\n---\nnumber ${n}\n`);
    }
    for (const at of [1, 1, 2]) {
      expect(await start(store, folder, `${failpoint}@${at}=kill`).ended).toEqual([null, "SIGKILL"]);
    }
    const last = start(store, folder);
    await eventually(
      "all are processed",
      async () => (await readdir(folder)).filter((name) => name.includes(".processed-")).length === 6 || undefined,
    );
    last.kill();
    await last.ended;
    expect((await tasksOf(store, 100)).map(({ spec }) => spec.goal).toSorted()).toEqual(
      Array.from({ length: 6 }, (_, n) => `number ${n}`),
    );
    expect((await readdir(folder)).filter((name) => !name.includes(".processed-"))).toEqual([]);
  });

  test("a full disk makes all of them wait, in their order", async () => {
    await using store = await openTestStore();
    const [folder, workspace] = [path.join(store.folder, "inbox"), path.join(store.folder, "work")];
    await mkdir(folder);
    await mkdir(workspace);
    for (let n = 0; n < 4; n += 1) {
      await writeFile(path.join(folder, `${n}.md`), `---\nworkspace: ${workspace}\n---\nnumber ${n}\n`);
    }
    // The first append is that of the inbox itself; the third is the second task.
    const child = start(store, folder, "journal.append.before-insert@3=enospc");
    await eventually(
      "all are processed",
      async () => (await readdir(folder)).every((name) => name.includes(".processed-")) || undefined,
    );
    child.kill();
    await child.ended;
    expect((await tasksOf(store, 10)).map(({ spec }) => spec.goal)).toEqual([0, 1, 2, 3].map((n) => `number ${n}`));
    expect(await readdir(folder)).toHaveLength(4);
  });

  test("two processes on one folder take each order once", async () => {
    await using store = await openTestStore();
    const [folder, workspace] = [path.join(store.folder, "inbox"), path.join(store.folder, "work")];
    await mkdir(folder);
    await mkdir(workspace);
    const children = [start(store, folder), start(store, folder)];
    for (let n = 0; n < 100; n += 1) {
      await writeFile(path.join(folder, `${n}.md`), `---\nworkspace: ${workspace}\n---\nnumber ${n}\n`);
    }
    await eventually(
      "all are processed",
      async () => (await readdir(folder)).filter((name) => name.includes(".processed-")).length === 100 || undefined,
    );
    for (const child of children) child.kill();
    for (const child of children) await child.ended;
    const goals = (await tasksOf(store, 200)).map(({ spec }) => spec.goal);
    expect([goals.length, new Set(goals).size]).toEqual([100, 100]);
  });
});

describe("F42: many files at once", () => {
  test.for([
    { count: 1_000, limitMs: 30_000 },
    { count: 10_000, limitMs: 300_000 },
  ])(
    "$count are admitted once each, in order, the first within two seconds",
    { timeout: 320_000 },
    async ({ count, limitMs }) => {
      await using store = await openTestStore();
      const [folder, workspace] = [path.join(store.folder, "inbox"), path.join(store.folder, "work")];
      await mkdir(folder);
      await mkdir(workspace);
      for (let n = 0; n < count; n += 1) {
        await writeFile(path.join(folder, `${n}.md`), `---\nworkspace: ${workspace}\n---\nnumber ${n}\n`);
      }
      const begin = performance.now();
      await using _inbox = await openInbox({
        journal: store.journal,
        tasks: openTasks({ journal: store.journal }),
        folder,
        log: (line) => expect.unreachable(line),
      });
      await eventually("the first task", async () => ((await tasksOf(store, 1)).length > 0 ? true : undefined));
      const firstMs = performance.now() - begin;
      expect(firstMs).toBeLessThan(2_000);
      const lastOf = async (): Promise<true | undefined> => {
        const counts = await store.journal.tasks.counts();
        return counts.pending === count ? true : undefined;
      };
      while (performance.now() - begin < limitMs && (await lastOf()) === undefined) await pause(100);
      const tasks = await tasksOf(store, count);
      expect(tasks.map(({ spec }) => spec.goal)).toEqual(Array.from({ length: count }, (_, n) => `number ${n}`));
      await eventually(
        "all are processed",
        async () => (await readdir(folder)).every((name) => name.includes(".processed-")) || undefined,
      );
    },
  );
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
