/** The frame of every file of scenarios: each chosen subject with a world and a server that its scenarios share. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listRunners } from "@heddle/agent/list-runners";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import type { HeddleClient } from "@heddle/client";
import type { AgentModel, ModelStep } from "./agent-model.ts";
import { isRecording, recordScene } from "./record.ts";
import { openRunnerWorld, type RunnerWorld, type Server } from "./runner-world.ts";
import { chosenSubjects } from "./subjects.ts";
import type { Subject } from "./subject.ts";
import { eventsOf, expectClosed, startTurn, type RunningTurn, type TurnOptions } from "./turns.ts";

export type Abilities = Awaited<ReturnType<typeof listRunners>>[number]["capabilities"];

export interface Scene {
  readonly client: HeddleClient;
  readonly world: RunnerWorld;
  readonly model: AgentModel;
  readonly threadId: string;
  readonly workspace: string;
  start(input: Parameters<typeof startTurn>[2], options?: TurnOptions): Promise<RunningTurn>;
  events(): ReturnType<typeof eventsOf>;
  /** An empty file in the workspace: commands wait for it. */
  touch(name: string): Promise<void>;
  /** All that is stored of the thread, after its last turn. */
  closed(): ReturnType<typeof eventsOf>;
}

export interface Stage {
  readonly subject: Subject;
  /** What its runner declares: a scenario that needs more is not played, and its name says which. */
  readonly can: Abilities;
  /** A fresh thread in a fresh workspace, and what the model says in it. */
  readonly scene: (...steps: readonly ModelStep[]) => Promise<Scene>;
  readonly world: () => RunnerWorld;
  /** In place of the one that was killed. */
  readonly restart: () => Promise<Server>;
  readonly server: () => Server;
}

export async function eachSubject(topic: string, scenarios: (stage: Stage) => void): Promise<void> {
  for (const subject of await chosenSubjects()) {
    const can = await abilitiesOf(subject);
    describe(`${subject.name} ${topic}`, () => {
      let world: RunnerWorld | undefined;
      let server: Server | undefined;
      beforeAll(async () => {
        world = await openRunnerWorld(subject);
        server = await world.serve();
      });
      let played: Scene | undefined;
      if (isRecording) {
        afterEach(async ({ task }) => {
          if (played !== undefined && task.result?.state === "pass") await recordScene(subject, played, task.name);
          played = undefined;
        });
      }
      afterAll(async () => world?.[Symbol.asyncDispose]());
      const there = <T>(value: T | undefined): T => {
        if (value === undefined) throw new Error("the world is not open");
        return value;
      };
      scenarios({
        subject,
        can,
        world: () => there(world),
        server: () => there(server),
        async restart() {
          server = await there(world).serve();
          return server;
        },
        async scene(...steps) {
          played = await openScene(there(world), () => there(server).client, steps);
          return played;
        },
      });
    });
  }
}

async function openScene(world: RunnerWorld, client: () => HeddleClient, steps: readonly ModelStep[]): Promise<Scene> {
  world.model.play(...steps);
  const workspace = await world.workspace();
  const { id: threadId } = await client().createThread({ workspace });
  return {
    get client() {
      return client();
    },
    world,
    model: world.model,
    threadId,
    workspace,
    start: (input, options = {}) =>
      startTurn(client(), threadId, input, {
        ...(options.envelope === undefined ? { sandboxMode: "workspace-write" } : {}),
        approvalPolicy: "never",
        ...options,
      }),
    events: () => eventsOf(client(), threadId),
    touch: (name) => writeFile(path.join(workspace, name), ""),
    async closed() {
      const events = await eventsOf(client(), threadId);
      expectClosed(events);
      return events;
    },
  };
}

/** As it is declared, whether the program is there or not. */
async function abilitiesOf({ name, protocol, says }: Subject): Promise<Abilities> {
  const [listed] = await listRunners(
    { [name]: { protocol, command: "/dev/null" } },
    {},
    { only: name, signal: AbortSignal.timeout(10_000) },
  );
  if (listed === undefined) throw new Error(`there is no runner ${name}`);
  return { ...listed.capabilities, ...says };
}

const LOOK_MS = 20;

/** Looks until it is so. */
export async function until(look: () => boolean | Promise<boolean>, what: string, withinMs = 20_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await look())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(LOOK_MS);
  }
}
