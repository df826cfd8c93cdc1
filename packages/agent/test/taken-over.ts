/** A Heddle whose agent is a played program that keeps a record, and can be continued by hand. */
import { appendFileSync, openSync, closeSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TurnHandle } from "../src/index.ts";
import type { PlayStep } from "./agent-play-in-child.ts";
import { openTestHeddle, type TestHeddle, type TestHeddleOptions } from "./test-heddle.ts";

export interface TakenOver extends AsyncDisposable {
  readonly t: TestHeddle;
  readonly options: TestHeddleOptions;
  /** Where the program keeps its record of a conversation. */
  recordOf(handle: string): Promise<string>;
  /** What the program does for the person: a shell script, with `$RECORD` and `$NEW`. */
  byHand(script: string, lines?: readonly (object | string)[]): Promise<void>;
  attach(threadId: string): Promise<TurnHandle>;
  /** What the terminal has shown. */
  shown(): Promise<string>;
}

/** Below the folder of the program. */
const RECORDS = {
  claude: (handle: string) => `projects/-workspace/${handle}.jsonl`,
  codex: (handle: string) => `sessions/2026/11/19/rollout-2026-11-19T10-00-00-${handle}.jsonl`,
  copilot: (handle: string) => `session-state/${handle}/events.jsonl`,
  gemini: (handle: string) => `tmp/workspace/chats/session-2026-11-19T10-00-${handle.slice(0, 8)}.jsonl`,
  qwen: (handle: string) => `projects/-workspace/chats/${handle}.jsonl`,
  // Nothing is known of it.
  other: (handle: string) => `${handle}.jsonl`,
};
export type PlayedProgram = keyof typeof RECORDS;

export async function openTakenOver(
  runner: PlayedProgram,
  children: string,
  {
    steps = [{ says: "the answer is 42" }],
    resume,
    ...more
  }: TestHeddleOptions & { readonly steps?: readonly PlayStep[]; readonly resume?: readonly string[] } = {},
): Promise<TakenOver> {
  const protocol = runner === "claude" || runner === "codex" ? runner : "acp";
  const folder = more.folder ?? (await mkdtemp(join(tmpdir(), "heddle-taken-")));
  const at = (name: string): string => join(folder, name);
  for (const name of ["program/bin", "own", "by-hand"]) await mkdir(at(name), { recursive: true });
  const command = at("program/bin/agent");
  const own = `exec sh '${at("by-hand/script")}' "$@"`;
  const isByHand = `case "$1" in --resume*|resume) ${own};; esac`;
  await writeFile(command, `#!/bin/sh\n${isByHand}\nexec '${process.execPath}' "$@"\n`);
  await chmod(command, 0o755);
  const args = [join(children, "agent-play-in-child.mjs"), protocol, JSON.stringify(steps)];
  const options: TestHeddleOptions = {
    ...more,
    folder,
    runners: { [runner]: { protocol, command, args, resume, hosts: [], folders: [at("own")] } },
    settings: { runner, provider: runner, model: "default", ...more.settings },
  };
  const t = await openTestHeddle(options);
  const terminal = openSync(at("terminal"), "w+");
  return {
    t,
    options,
    async recordOf(handle) {
      const file = join(at("own"), RECORDS[runner](handle));
      await mkdir(dirname(file), { recursive: true });
      appendFileSync(file, "");
      await writeFile(at("by-hand/record"), file);
      return file;
    },
    async byHand(script, lines = []) {
      const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
      await writeFile(at("by-hand/new"), lines.length === 0 ? "" : `${text}\n`);
      const record = await readFile(at("by-hand/record"), "utf8").catch(() => "");
      await writeFile(at("by-hand/script"), `RECORD='${record}'\nNEW='${at("by-hand/new")}'\n${script}\n`);
    },
    attach: (threadId) => t.heddle.as("user:owner").attach({ threadId, terminal: [terminal, terminal, terminal] }),
    shown: () => readFile(at("terminal"), "utf8"),
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      closeSync(terminal);
    },
  };
}
