import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeRooms, readsOf, runIn } from "../../test/room-fixture.ts";
import { openSandbox } from "../sandbox/open.ts";
import { findOverlay } from "./probe.ts";

/** Nothing depends on their number; `npm run bench` takes ten times as many. */
const FILES_IN_BASE = 5000;
const FILES_IN_LAYER = 1000;
const ROUNDS = 9;
const found = await findOverlay();

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

interface Took {
  readonly wallMs: number;
  /** Of this process: a layer is put in by it alone, and a busy machine does not count. */
  readonly cpuMs: number;
}

async function timed(work: () => Promise<AsyncDisposable>): Promise<Took> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  await using _opened = await work();
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs: performance.now() - start, cpuMs: (user + system) / 1000 };
}

test.runIf(found.ok)(
  "13: a room opens in 300 ms, and 1,000 files of a layer take 150 ms of work more",
  async ({ annotate }) => {
    await using rooms = await makeRooms({ base: {} });
    for (let index = 0; index < FILES_IN_BASE; index += 1) {
      const folder = join(rooms.base, `d${index % 50}/e${index % 100}`);
      if (index < 100) mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, `f${index}`), "");
    }
    const paths = Array.from({ length: FILES_IN_LAYER }, (_, index) => `d${index % 50}/e${index % 100}/f${index}`);
    for (const [index, path] of paths.entries()) {
      mkdirSync(join(rooms.layer, path, ".."), { recursive: true });
      writeFileSync(join(rooms.layer, path), `changed ${index}\n`.repeat(50));
    }
    const { workspace, layer: folder } = rooms;
    const policy = { workspace, writeRoots: [workspace], masked: [], network: "none" } as const;
    const times = { sandbox: [] as Took[], empty: [] as Took[], full: [] as Took[] };
    const sandbox = async (): Promise<AsyncDisposable> => {
      const opened = await openSandbox(policy);
      await opened.ready;
      return opened;
    };
    // In turns, so that a busy moment strikes all of them.
    for (let round = 0; round < ROUNDS; round += 1) {
      times.sandbox.push(await timed(sandbox));
      times.empty.push(await timed(() => rooms.open({ kind: "overlay", layer: { folder, paths: [], removed: [] } })));
      times.full.push(await timed(() => rooms.open({ kind: "overlay", layer: { folder, paths, removed: [] } })));
    }
    const wall = (of: keyof typeof times): number => median(times[of].map(({ wallMs }) => wallMs));
    const cpu = (of: keyof typeof times): number => median(times[of].map(({ cpuMs }) => cpuMs));
    const figures =
      `a sandbox alone ${wall("sandbox").toFixed(0)} ms; room ${wall("empty").toFixed(0)} ms; ` +
      `layer ${(wall("full") - wall("empty")).toFixed(0)} ms more, ${(cpu("full") - cpu("empty")).toFixed(0)} ms of work`;
    await annotate(figures);
    await using room = await rooms.open({ kind: "overlay", layer: { folder, paths, removed: [] } });
    await runIn(room, `cat ${paths[7]} ${paths[8]}`);
    expect(await readsOf(room)).toEqual(paths.slice(7, 9));
    expect(wall("empty"), figures).toBeLessThan(300);
    expect(cpu("full") - cpu("empty"), figures).toBeLessThan(150);
  },
);
