/** A real Heddle with a scripted model and the host's real sandbox, its tasks, and a harness that carries them out. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHeddle, type Heddle, type HeddleOptions } from "@heddle/agent";
import type { ProviderConfig } from "@heddle/models";
import { isTaskEvent, type EventOf, type StoredEvent, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";
import { openHarness, openTasks, type Harness, type HarnessOptions, type Tasks } from "../src/index.ts";

type Script = NonNullable<ProviderConfig["script"]>;

export interface TestHarnessOptions {
  readonly script?: Script;
  readonly providers?: readonly ProviderConfig[];
  readonly runners?: HeddleOptions["runners"];
  /** Shared with an earlier one, to play a second process or a restart. */
  readonly folder?: string;
  readonly isUnattended?: boolean;
  readonly concurrency?: number;
  readonly now?: () => number;
  readonly log?: (line: string) => void;
  readonly settings?: HarnessOptions["settingsFor"];
  readonly slowStartMs?: number;
  readonly leaseMs?: number;
  readonly member?: HeddleOptions["member"];
  readonly backend?: "namespaces" | "bwrap";
  readonly dayLimits?: HeddleOptions["dayLimits"];
}

export interface TestHarness extends AsyncDisposable {
  readonly folder: string;
  readonly home: string;
  readonly workspace: string;
  readonly heddle: Heddle;
  readonly tasks: Tasks;
  /** Opens a harness; it is closed with the rest. */
  work(): Promise<Harness>;
  add(
    spec?: Partial<TaskSpecInput>,
    more?: { readonly key?: string; readonly notBefore?: number },
  ): Promise<TaskRecord>;
  /** As soon as it is so. */
  until(taskId: string, isSo: (task: TaskRecord) => boolean): Promise<TaskRecord>;
  /** When none of them moves by itself any more. */
  settled(...taskIds: readonly string[]): Promise<readonly TaskRecord[]>;
  events(stream: string): Promise<readonly StoredEvent[]>;
  /** The bodies of one kind of event of a task. */
  of<T extends TaskEventBody["type"]>(taskId: string, type: T): Promise<readonly EventOf<T>[]>;
}

/** No test waits longer than this for what should come. */
export const DEADLINE_MS = 60_000;

export async function openTestHarness(options: TestHarnessOptions = {}): Promise<TestHarness> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "heddle-harness-")));
  const home = join(folder, "home");
  const workspace = join(folder, "workspace");
  await mkdir(workspace, { recursive: true });
  const heddle = await openHeddle({
    home,
    providers: options.providers ?? [{ id: "scripted", family: "openai", script: options.script ?? [] }],
    env: { PATH: process.env["PATH"] },
    isUnattended: options.isUnattended ?? false,
    runners: options.runners,
    leaseMs: options.leaseMs,
    member: options.member,
    dayLimits: options.dayLimits,
    ...(options.backend === undefined ? {} : { sandboxBackend: options.backend }),
  });
  const { journal } = heddle;
  const now = options.now === undefined ? {} : { now: options.now };
  const tasks = openTasks({ journal, home, ...now }).as("user:owner");
  const opened: Harness[] = [];
  const until = (taskId: string, isSo: (task: TaskRecord) => boolean): Promise<TaskRecord> =>
    untilTask(heddle, taskId, isSo);
  return {
    folder,
    home,
    workspace,
    heddle,
    tasks,
    async work() {
      const harness = await openHarness(harnessOptions(heddle, home, options));
      opened.push(harness);
      return harness;
    },
    add: (spec = {}, more = {}) =>
      tasks.add({ spec: testSpec({ workspace, ...spec }), source: { kind: "cli" }, ...more }),
    until,
    settled: (...taskIds) =>
      Promise.all(taskIds.map((id) => until(id, (task) => task.holder === undefined && !isOnItsWay(task)))),
    events: (stream) => journal.read({ stream, after: 0 }),
    of: async (taskId, type) =>
      (await journal.read({ stream: taskId, after: 0 })).map(({ body }) => body).filter(isOf(type)),
    async [Symbol.asyncDispose]() {
      for (const harness of opened) await harness[Symbol.asyncDispose]();
      await heddle[Symbol.asyncDispose]();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

export function harnessOptions(heddle: Heddle, home: string, options: TestHarnessOptions): HarnessOptions {
  const { concurrency = 4, now, log, slowStartMs } = options;
  return {
    heddle,
    home,
    concurrency,
    settingsFor: options.settings ?? settingsFor,
    ...(now === undefined ? {} : { now }),
    ...(log === undefined ? {} : { log }),
    ...(slowStartMs === undefined ? {} : { slowStartMs }),
  };
}

const settingsFor: HarnessOptions["settingsFor"] = (spec) => ({
  provider: spec.provider ?? "scripted",
  model: spec.model ?? "scripted",
  sandboxMode: spec.sandbox,
  networkAccess: spec.network === true,
  writableRoots: [],
  approvalPolicy: spec.approval,
  ...(spec.envelope === undefined ? {} : { envelope: spec.envelope }),
  ...(spec.ceiling === undefined ? {} : { ceiling: spec.ceiling }),
});

function testSpec(spec: Partial<TaskSpecInput> & { readonly workspace: string }): TaskSpec {
  return TaskSpec.parse({ name: "fix", goal: "make it pass", ...spec });
}

/** Bodies that a scripted model of the OpenAI family can say. */
export const shell = (cmd: string): { tool: string; args: { cmd: string } } => ({
  tool: "exec_command",
  args: { cmd },
});
export const report = (
  status: "done" | "blocked" | "progress",
  summary = "",
  steps?: readonly number[],
): { tool: string; args: Record<string, unknown> } => ({
  tool: "task_report",
  args: { status, summary, ...(steps === undefined ? {} : { steps_done: steps }) },
});

function isOnItsWay({ state }: TaskRecord): boolean {
  return state === "pending" || state === "waiting";
}

async function untilTask(
  { journal }: Heddle,
  taskId: string,
  isSo: (task: TaskRecord) => boolean,
): Promise<TaskRecord> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  let last: TaskRecord | undefined;
  for await (const { body } of journal.tail({ stream: taskId, after: 0, signal })) {
    if (!isTaskEvent(body)) continue;
    last = await journal.tasks.get(taskId);
    if (last !== undefined && isSo(last)) return last;
  }
  throw new Error(`not within ${DEADLINE_MS} ms: ${JSON.stringify(last)}`);
}

function isOf<T extends TaskEventBody["type"]>(type: T): (body: StoredEvent["body"]) => body is EventOf<T> {
  return (body): body is EventOf<T> => body.type === type;
}
