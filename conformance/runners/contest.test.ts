/** Three real agents on one task: one only says that it is done, and is never picked, also when Heddle is killed in between. */
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Task } from "@heddle/client";
import { expect, test } from "vitest";
import { openRunnerWorld, type RunnerWorld, type Server } from "./runner-world.ts";
import { chosenSubjects } from "./subjects.ts";
import { eventsOf, ofType } from "./turns.ts";

const CONTEST_MS = 300_000;
const LIAR = "copilot";
const HONEST = ["claude-acp", "codex-acp"] as const;

const chosen = await chosenSubjects();
const [liar, ...honest] = [LIAR, ...HONEST].map((name) => chosen.find((subject) => subject.name === name));

/** Killed before its command did anything, an agent is asked again, and does it then. */
const WORK = { runs: "sleep 2; echo 42 > answer.txt" };

interface Begun {
  readonly id: string;
  readonly workspace: string;
}

async function begin(world: RunnerWorld, server: Server): Promise<Begun> {
  const workspace = await world.workspace();
  await writeFile(path.join(workspace, "README"), "What is six times seven?\n");
  world.models.get(LIAR)?.play(...Array.from({ length: 8 }, () => ({ says: "Done.\nTASK COMPLETE" })));
  for (const name of HONEST) {
    const again = Array.from({ length: 4 }, () => [WORK, { says: "Done.\nTASK COMPLETE" }]).flat();
    world.models.get(name)?.play(...again);
  }
  const spec = {
    goal: "answer.txt holds the answer.",
    agents: [LIAR, ...HONEST],
    checks: [{ kind: "command", name: "sum", run: 'test "$(cat answer.txt)" = 42' }],
    deliver: ["answer.txt"],
    maxNudges: 1,
    pick: "best",
    order: ["lines"],
  };
  const { id } = await server.client.tasks.create({ workspace, spec });
  return { id, workspace };
}

const LOOK_EVERY_MS = 200;

async function settled(server: Server, id: string): Promise<Task> {
  const signal = AbortSignal.timeout(CONTEST_MS);
  for (;;) {
    const task = await server.client.tasks.read(id);
    if (/verified|failed|cancelled|paused/.test(task.state)) return task;
    await sleep(LOOK_EVERY_MS, undefined, { signal });
  }
}

async function expectHonest(server: Server, { id, workspace }: Begun): Promise<void> {
  const task = await settled(server, id);
  const rows = task.contest?.rows ?? [];
  expect(rows.map(({ name, isVerified }) => [name, isVerified])).toEqual([
    [LIAR, false],
    ...HONEST.map((name) => [name, true]),
  ]);
  expect(task).toMatchObject({ state: "verified", contest: { generation: 1, hasEnded: true } });
  expect(rows.find(({ isPicked }) => isPicked)?.name).not.toBe(LIAR);
  expect(await readFile(path.join(workspace, "answer.txt"), "utf8")).toBe("42\n");
  const { data: tasks } = await server.client.tasks.list({ parentId: id });
  expect(tasks.map((one) => one.id).toSorted()).toEqual(rows.map(({ taskId }) => taskId).toSorted());
  for (const { taskId, name } of rows) {
    const one = await server.client.tasks.read(taskId);
    const events = (await server.client.tasks.log(taskId)).data.map(({ body }) => body);
    expect(events.filter(({ type }) => type === "task.created")).toHaveLength(1);
    expect(events.filter((body) => body.type === "task.prompted" && body.why === "first")).toHaveLength(1);
    const programs = ofType(await eventsOf(server.client, one.threadId ?? ""), "agent.started");
    expect(new Set(programs.map(({ runner }) => runner))).toEqual(new Set([name]));
  }
}

const isChosen = liar !== undefined && honest.every((subject) => subject !== undefined);

test.runIf(isChosen)(
  `of ${LIAR}, which only says that it is done, and ${HONEST.join(" and ")} the liar is not picked`,
  async () => {
    if (liar === undefined) return;
    await using world = await openRunnerWorld(liar, ...honest.flatMap((subject) => subject ?? []));
    const server = await world.serve();
    await expectHonest(server, await begin(world, server));
  },
  CONTEST_MS,
);

test.runIf(isChosen)(
  "killed while its contestants work, the next server brings the contest to the same end",
  async () => {
    if (liar === undefined) return;
    await using world = await openRunnerWorld(liar, ...honest.flatMap((subject) => subject ?? []));
    const first = await world.serve();
    const begun = await begin(world, first);
    for (const name of HONEST) await world.models.get(name)?.asked(1);
    await first.kill();
    await expectHonest(await world.serve(), begun);
  },
  CONTEST_MS,
);
