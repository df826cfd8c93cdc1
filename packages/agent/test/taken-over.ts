/** A Heddle whose agent is a played Claude Code or Codex that keeps a record, and can be continued by hand. */
import { appendFileSync, openSync, closeSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

export async function openTakenOver(
  protocol: "claude" | "codex" | "acp",
  children: string,
  {
    steps = [{ says: "the answer is 42" }],
    ...more
  }: TestHeddleOptions & { readonly steps?: readonly PlayStep[] } = {},
): Promise<TakenOver> {
  const folder = more.folder ?? (await mkdtemp(join(tmpdir(), "heddle-taken-")));
  const at = (name: string): string => join(folder, name);
  for (const name of ["program/bin", "own", "by-hand"]) await mkdir(at(name), { recursive: true });
  const command = at("program/bin/agent");
  const isByHand = '[ "$1" = --resume ] || [ "$1" = resume ]';
  const own = `exec sh '${at("by-hand/script")}' "$@"`;
  await writeFile(command, `#!/bin/sh\nif ${isByHand}; then ${own}; fi\nexec '${process.execPath}' "$@"\n`);
  await chmod(command, 0o755);
  const args = [join(children, "agent-play-in-child.mjs"), protocol, JSON.stringify(steps)];
  const options: TestHeddleOptions = {
    ...more,
    folder,
    runners: { [protocol]: { protocol, command, args, hosts: [], folders: [at("own")] } },
    settings: { runner: protocol, provider: protocol, model: "default", ...more.settings },
  };
  const t = await openTestHeddle(options);
  const terminal = openSync(at("terminal"), "w+");
  return {
    t,
    options,
    async recordOf(handle) {
      const [inside, name] =
        protocol === "claude"
          ? ["own/projects/-workspace", `${handle}.jsonl`]
          : ["own/sessions/2026/11/19", `rollout-2026-11-19T10-00-00-${handle}.jsonl`];
      await mkdir(at(inside), { recursive: true });
      const file = join(at(inside), name);
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
