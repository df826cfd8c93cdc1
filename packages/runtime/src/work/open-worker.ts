/** A process that runs the tasks of a home: the harness, the inbox, and the sinks of notifications. */
import type { TaskDoorOptions } from "@heddle/server/http";
import { openHarness, ticketDispatch, type Harness, type TicketQueue } from "@heddle/tasks";
import type { Serving } from "../serving/open-serving.ts";
import type { ConfigFile } from "../config/schema.ts";
import { openTaskDoor, taskDoorOptionsOf } from "./open-task-door.ts";
import type { TurnSettings, WorkerRole } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { SettingsSource } from "@heddle/server";

export interface WorkerOptions extends Pick<Serving, "heddle" | "settings"> {
  /** Absent: the store is its own queue. */
  readonly tickets?: TicketQueue | undefined;
  readonly home: string;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
  /** Absent: it carries out every task of the home. */
  readonly only?: Promise<readonly string[]> | undefined;
  /** `worker`: tasks alone; absent: the inbox and notifications too. */
  readonly role?: Exclude<WorkerRole, "server"> | undefined;
  /** Absent: as configured. */
  readonly concurrency?: number | undefined;
}

export interface Worker {
  readonly harness: Harness;
  readonly taskDoor: TaskDoorOptions;
}

/** How many tasks are carried out at a time unless the configuration says otherwise. */
const DEFAULT_CONCURRENCY = 2;

export function concurrencyOf({ tasks }: ConfigFile): number {
  return tasks?.concurrency ?? DEFAULT_CONCURRENCY;
}

/** Everything that is opened is closed with `ends`. */
export async function openWorker(ends: AsyncDisposableStack, options: WorkerOptions): Promise<Worker> {
  const { heddle, settings, home, config, env, log, only, tickets, role = "both" } = options;
  const { journal, member } = heddle;
  const door = { journal, home, config, env, log, member };
  const taskDoor = role === "worker" ? taskDoorOptionsOf(door) : await openTaskDoor(ends, door);
  const settingsFor = settingsForTask.bind(undefined, settings);
  const { concurrency = concurrencyOf(config) } = options;
  // A choice of tasks is for one process alone, which looks for them itself.
  const dispatch = tickets === undefined || only !== undefined ? {} : { dispatch: ticketDispatch(journal, tickets) };
  const harness = ends.use(await openHarness({ heddle, settingsFor, home, concurrency, log, only, ...dispatch }));
  return { harness, taskDoor: { ...taskDoor, concurrency } };
}

/** What the turns of a task run with: what its spec says, over the configuration that `heddle exec` goes by. */
/** Fails as exec does, before anything is asked of a model: no key, no such provider or model. */
export async function settingsForTask(source: SettingsSource, spec: TaskSpec): Promise<TurnSettings> {
  const settings = await source.resolve({
    workspace: spec.workspace,
    patch: {
      runner: spec.runner,
      model: spec.model,
      provider: spec.provider,
      effort: spec.effort,
      sandboxMode: spec.sandbox,
      envelope: spec.envelope,
      ceiling: spec.ceiling,
      approvalPolicy: spec.approval,
    },
  });
  // The sandbox of a task is what its own file says. Checks see the host outside the workspace as it is, so an agent that may
  // write there would write what judges it.
  const { networkHosts: _, ...others } = settings;
  const hosts = typeof spec.network === "boolean" ? {} : { networkHosts: spec.network };
  return { ...others, networkAccess: spec.network === true, ...hosts, writableRoots: [] };
}
