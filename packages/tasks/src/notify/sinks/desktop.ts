/** Notifications on this machine's desktop. */
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import path from "node:path";
import type { NotificationName } from "../names.ts";
import type { SendResult, Sink } from "../sink.ts";
import { escapeMarkup, shownMessage } from "./bodies.ts";

export interface DesktopOptions {
  readonly name: string;
  readonly events: ReadonlySet<NotificationName>;
  readonly env: NodeJS.ProcessEnv;
}

const TIMEOUT_MS = 5_000;
const MISSING = "there is neither notify-send (package libnotify-bin) nor osascript on the PATH of this machine";

/** The texts are arguments of the script, never part of it. */
const OSASCRIPT = [
  "-e",
  "on run argv",
  "-e",
  "display notification (item 2 of argv) with title (item 1 of argv)",
  "-e",
  "end run",
];

export function desktopSink({ name, events, env }: DesktopOptions): Sink {
  return {
    name,
    kind: "desktop",
    target: "the screen of this machine",
    events,
    secrets: [],
    // A desktop notification is not worth a day of tries.
    maxTries: 3,
    async send(notification, { signal }): Promise<SendResult> {
      const { title, lines } = shownMessage(notification);
      const body = lines.join("\n");
      const notifySend = await findProgram("notify-send", env);
      if (notifySend !== undefined) {
        return run(notifySend, ["--app-name=Heddle", "--", title, escapeMarkup(body)], { env, signal });
      }
      const osascript = await findProgram("osascript", env);
      if (osascript !== undefined) return run(osascript, [...OSASCRIPT, title, body], { env, signal });
      return { kind: "dead", message: MISSING };
    },
  };
}

function run(
  program: string,
  args: readonly string[],
  { env, signal }: { readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal },
): Promise<SendResult> {
  return new Promise((resolve) => {
    execFile(program, [...args], { env, signal, timeout: TIMEOUT_MS, killSignal: "SIGKILL" }, (error) => {
      const name = path.basename(program);
      if (error === null) resolve({ kind: "delivered", message: `shown with ${name}` });
      else
        resolve({
          kind: "retry",
          message: `${name} failed: ${error.killed === true ? "no end" : `exit ${String(error.code)}`}`,
        });
    });
  });
}

async function findProgram(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const folder of (env["PATH"] ?? "").split(path.delimiter)) {
    if (!path.isAbsolute(folder)) continue;
    const file = path.join(folder, name);
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return undefined;
}
