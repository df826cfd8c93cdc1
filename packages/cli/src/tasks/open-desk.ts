/** What a process that works for tasks has around it: the inbox that brings orders, the sinks that are told of them. */
import type { Journal } from "@heddle/journal";
import { openInbox, openLoomSettings, openNotifier, openTasks, parseDuration, type WebhookDoor } from "@heddle/tasks";
import { inboxOf } from "../config/inbox.ts";
import { notifyingOf } from "../config/notify.ts";
import type { ConfigFile } from "../config/schema.ts";

export interface DeskOptions {
  readonly journal: Journal;
  readonly home: string;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
}

export interface Desk {
  /** For orders that come over HTTP. */
  readonly door: WebhookDoor;
  /** Folders that an order may be named in. */
  readonly folders: readonly string[];
}

/** Everything that is opened is closed with `ends`. */
export async function openDesk(ends: AsyncDisposableStack, options: DeskOptions): Promise<Desk> {
  const { journal, home, config, env, log } = options;
  const { folder, rescanMs, settleMs, ...common } = inboxOf(config, env);
  const { sinks, recentMessages } = notifyingOf(config, env);
  const door: WebhookDoor = {
    journal,
    tasks: openTasks({ journal }),
    specDefaults: openLoomSettings(env).defaults,
    minEveryMs: parseDuration(config.tasks?.min_interval ?? ""),
    ...common,
  };
  // Told before it is begun: what the first order does is heard of.
  ends.use(openNotifier({ journal, sinks, home, log, ...(recentMessages === undefined ? {} : { recentMessages }) }));
  if (folder !== undefined) {
    ends.use(
      await openInbox({
        ...door,
        folder,
        log,
        ...(rescanMs === undefined ? {} : { rescanMs }),
        ...(settleMs === undefined ? {} : { settleMs }),
      }),
    );
    log(`files in ${folder} become tasks`);
  }
  return { door, folders: folder === undefined ? [] : [folder] };
}
