/** Where orders come from: `[inbox]` of the configuration, and the variables of OpenLoom where it is silent. */
import { HeddleError } from "@heddle/protocol";
import type { WebhookSource } from "@heddle/tasks";
import type { InboxTable } from "../config/inbox-table.ts";
import type { ConfigFile } from "../config/schema.ts";

type Env = NodeJS.ProcessEnv;

export interface InboxSettings {
  /** Absent: no folder is watched. */
  readonly folder: string | undefined;
  readonly defaultWorkspace: string | undefined;
  readonly defaultThread: string | undefined;
  readonly roots: readonly string[] | undefined;
  readonly rescanMs: number | undefined;
  readonly settleMs: number | undefined;
  readonly sources: readonly WebhookSource[];
}

export function inboxOf({ inbox = {}, tasks }: ConfigFile, env: Env): InboxSettings {
  const seconds = inbox.poll_seconds ?? pollSeconds(env);
  return {
    folder: inbox.folder ?? set(env, "OPENLOOM_INBOX_DIR"),
    defaultWorkspace: inbox.default_workspace ?? set(env, "OPENLOOM_INBOX_DEFAULT_WORKSPACE"),
    defaultThread: inbox.default_thread ?? set(env, "OPENLOOM_INBOX_DEFAULT_SESSION"),
    roots: tasks?.workspace_roots,
    rescanMs: seconds === undefined ? undefined : seconds * 1000,
    settleMs: inbox.settle_ms,
    sources: sourcesOf(inbox, env),
  };
}

function sourcesOf({ webhooks = {} }: InboxTable, env: Env): readonly WebhookSource[] {
  return Object.entries(webhooks).map(([name, table]) => {
    const { type: kind = "generic", secret_env: variable, workspace, workspaces, label, command } = table;
    const secret = variable === undefined ? undefined : set(env, variable);
    if (variable !== undefined && secret === undefined) {
      throw new HeddleError(
        "config.invalid",
        `[inbox.webhooks.${name}] takes secret_env from ${variable}, which is not set`,
      );
    }
    return { name, kind, secret, workspace, workspaces, label, command };
  });
}

function pollSeconds(env: Env): number | undefined {
  const text = set(env, "OPENLOOM_INBOX_POLL_SECONDS");
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(1, seconds);
  throw new HeddleError(
    "config.invalid",
    `OPENLOOM_INBOX_POLL_SECONDS must be a number of seconds, not ${JSON.stringify(text)}`,
  );
}

function set(env: Env, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === "" ? undefined : value;
}
