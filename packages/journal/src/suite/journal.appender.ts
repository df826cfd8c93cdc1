/** A child process that opens a store, appends, and prints the id of each acknowledged event. For tests. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import type { SuiteStore } from "./journal.suite.ts";

export interface AppenderOptions {
  readonly store: Pick<SuiteStore, "address" | "backend">;
  readonly stream: string;
  readonly count: number;
  readonly failpoint?: string;
  readonly durability?: "full" | "relaxed";
  readonly size?: number;
  /** After a refused append the next one is tried; otherwise it ends. */
  readonly goesOn?: boolean;
  /** How the child is started; its command comes last. */
  readonly wrapper?: readonly string[];
}

export interface AppenderEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  readonly refused: readonly string[];
}

export interface Appender extends AsyncDisposable {
  readonly ids: readonly string[];
  acknowledged(count: number): Promise<void>;
  ended(): Promise<AppenderEnd>;
  kill(): Promise<void>;
}

export function startAppender(options: AppenderOptions): Appender {
  const { wrapper = [], failpoint, store, ...rest } = options;
  const bundle = (name: string): string => join(inject("children"), `${basename(name, ".ts")}.mjs`);
  const work = { ...rest, address: store.address, backend: bundle(store.backend) };
  const command = [...wrapper, process.execPath, bundle("journal.appender-main"), JSON.stringify(work)];
  const child = spawn(command[0] ?? process.execPath, command.slice(1), {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_OPTIONS: "", HEDDLE_FAILPOINT: failpoint ?? "" },
  });
  const ids: string[] = [];
  const refused: string[] = [];
  const waiting = new Set<() => void>();
  const lines = createInterface(child.stdout);
  lines.on("line", (line) => {
    const [kind, value = ""] = line.split(" ");
    if (kind === "ack") ids.push(value);
    if (kind === "refused") refused.push(value);
    for (const check of waiting) check();
  });
  const ended = Promise.all([once(child, "close"), text(child.stderr)]).then(([, stderr]): AppenderEnd => {
    for (const check of waiting) check();
    return { code: child.exitCode, signal: child.signalCode, stderr, refused };
  });

  async function kill(): Promise<void> {
    child.kill("SIGKILL");
    await ended;
  }

  return {
    ids,
    acknowledged(count) {
      return new Promise((resolve, reject) => {
        const check = (): void => {
          if (ids.length < count && child.exitCode === null) return;
          waiting.delete(check);
          if (ids.length >= count) resolve();
          else reject(new Error(`the appender ended after ${ids.length} of ${count}`));
        };
        waiting.add(check);
        check();
      });
    },
    ended: () => ended,
    kill,
    [Symbol.asyncDispose]: kill,
  };
}
