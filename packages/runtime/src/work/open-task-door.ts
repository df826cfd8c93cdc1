/** What a process that runs tasks needs beside the harness: the inbox, and the sinks of notifications. */
import { claimDuty, type Member } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { INBOX } from "@heddle/protocol";
import type { TaskDoorOptions } from "@heddle/server/http";
import { openInbox, openLoomSettings, openNotifier, openTasks, parseDuration } from "@heddle/tasks";
import { inboxOf } from "./inbox.ts";
import { notifyingOf } from "./notify.ts";
import type { ConfigFile } from "../config/schema.ts";
import { requireAgents } from "../settings/require-agents.ts";

export interface TaskDoorConfig {
  readonly journal: Journal;
  readonly home: string;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
  /** Of several servers at one store the first one notifies. */
  readonly member?: Member | undefined;
}

/** What is configured; nothing is looked after, and no task carried out. */
export function taskDoorOptionsOf({ journal, home, config, env }: Omit<TaskDoorConfig, "log">): TaskDoorOptions {
  const { folder, rescanMs: _rescan, settleMs: _settle, ...common } = inboxOf(config, env);
  const door = {
    journal,
    home,
    specDefaults: openLoomSettings(env).defaults,
    minEveryMs: parseDuration(config.tasks?.min_interval ?? ""),
    ...common,
  };
  const { sinks } = notifyingOf(config, env);
  return {
    tasks: openTasks({
      journal,
      home,
      requireAgents: (spec) => requireAgents(spec, { file: config, overrides: {} }, env),
    }),
    door,
    folders: folder === undefined ? [] : [folder],
    sinks,
    publicUrl: config.public_url,
    concurrency: 0,
  };
}

/** Everything that is opened is closed with `ends`. */
export async function openTaskDoor(ends: AsyncDisposableStack, options: TaskDoorConfig): Promise<TaskDoorOptions> {
  const { journal, home, config, env, log, member } = options;
  const { folder, rescanMs, settleMs } = inboxOf(config, env);
  const { recentMessages } = notifyingOf(config, env);
  const taskDoor = taskDoorOptionsOf(options);
  const { tasks, door, sinks } = taskDoor;
  // Before the inbox, so that the first order is reported too.
  ends.use(
    await openNotifier({
      journal,
      sinks,
      home,
      log,
      publicUrl: config.public_url,
      claim: member && (() => claimDuty(journal, member)),
      ...(recentMessages === undefined ? {} : { recentMessages }),
    }),
  );
  if (folder !== undefined) {
    ends.use(
      await openInbox({
        ...door,
        tasks: tasks.as(INBOX),
        folder,
        log,
        ...(rescanMs === undefined ? {} : { rescanMs }),
        ...(settleMs === undefined ? {} : { settleMs }),
      }),
    );
    log(`files in ${folder} become tasks`);
  }
  return taskDoor;
}
