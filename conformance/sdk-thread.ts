/** The Codex SDK, as it is, over either program, with a fixture and a scripted model of its own. */
import { readdir, readFile } from "node:fs/promises";
import { Codex, type CodexOptions, type ThreadEvent, type ThreadOptions } from "@openai/codex-sdk";
import type { Program } from "./program.ts";
import { openClientWorld, type ClientWorld, type ClientWorldOptions } from "./sdk-world.ts";

/** What the scripted model says that an answer used. */
export const USAGE = {
  input_tokens: 100,
  cached_input_tokens: 40,
  cache_write_input_tokens: 0,
  output_tokens: 20,
  reasoning_output_tokens: 5,
};

export const SCHEMA = {
  type: "object",
  properties: { answer: { type: "string" } },
  required: ["answer"],
  additionalProperties: false,
};

export interface SdkWorld extends ClientWorld {
  /** In the workspace unless the options say otherwise. */
  readonly thread: ThreadOptions;
  open(options?: CodexOptions): Codex;
}

export async function openSdkWorld(program: Program, options: ClientWorldOptions = {}): Promise<SdkWorld> {
  const world = await openClientWorld(program, options);
  return {
    ...world,
    thread: { workingDirectory: world.fixture.workspace },
    open: (more = {}) => new Codex({ codexPathOverride: program.file, env: { ...world.fixture.env }, ...more }),
  };
}

export async function collect(events: AsyncGenerator<ThreadEvent>): Promise<readonly ThreadEvent[]> {
  const all: ThreadEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** The command line of every process of this machine, its words parted by NUL. */
export async function commandLines(): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
}

/** Waits for something that announces itself to nobody. */
export async function until(condition: () => Promise<boolean>, withinMs = 10_000): Promise<void> {
  const from = performance.now();
  while (!(await condition())) {
    if (performance.now() - from > withinMs) throw new Error(`not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
