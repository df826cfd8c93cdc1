/** A process that works for the tasks of a home: the harness that carries them out, the inbox that brings them, the sinks that are told. */
import type { TaskDesk } from "@heddle/server/http";
import { openHarness, type Harness } from "@heddle/tasks";
import type { Serving } from "../serving/open-serving.ts";
import type { ConfigFile } from "../config/schema.ts";
import { openDesk } from "./open-desk.ts";
import { settingsForTask } from "./settings-for.ts";

export interface WorkerOptions extends Pick<Serving, "heddle" | "settings"> {
  readonly home: string;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
  /** Absent: it carries out every task of the home. */
  readonly only?: Promise<readonly string[]> | undefined;
}

export interface Worker {
  readonly harness: Harness;
  readonly desk: TaskDesk;
}

/** How many tasks are carried out at a time unless the configuration says otherwise. */
const DEFAULT_CONCURRENCY = 2;

export function concurrencyOf({ tasks }: ConfigFile): number {
  return tasks?.concurrency ?? DEFAULT_CONCURRENCY;
}

/** Everything that is opened is closed with `ends`. */
export async function openWorker(ends: AsyncDisposableStack, options: WorkerOptions): Promise<Worker> {
  const { heddle, settings, home, config, env, log, only } = options;
  const desk = await openDesk(ends, { journal: heddle.journal, home, config, env, log });
  const settingsFor = settingsForTask.bind(undefined, settings);
  const concurrency = concurrencyOf(config);
  const harness = ends.use(await openHarness({ heddle, settingsFor, home, concurrency, log, only }));
  return { harness, desk: { ...desk, concurrency } };
}
