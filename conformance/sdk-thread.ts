/** The Codex SDK, as it is, over either program, with a fixture and a scripted model of its own. */
import { readdir, readFile } from "node:fs/promises";
import { Codex, type CodexOptions, type ThreadEvent, type ThreadOptions } from "@openai/codex-sdk";
import { startModelServer, type Fault, type ModelServer } from "@heddle/models/testing";
import { MOCK_CONFIG, say, type ExecCase, type Step } from "./exec-case.ts";
import { openFixture, type Fixture } from "./fixture.ts";
import type { Program } from "./program.ts";

export interface SdkWorld extends AsyncDisposable {
  readonly fixture: Fixture;
  readonly server: ModelServer;
  /** In the workspace unless the options say otherwise. */
  readonly thread: ThreadOptions;
  open(options?: CodexOptions): Codex;
  /** The body of a request, as far as the tests look at it. */
  request(number: number): RequestBody;
}

export interface RequestBody {
  readonly model: string;
  readonly effort: unknown;
  readonly format: unknown;
  readonly images: number;
  /** What the user said, one text for each message. */
  readonly prompts: readonly string[];
}

interface SdkWorldOptions extends Pick<ExecCase, "config" | "isOutsideGit" | "setUp" | "files"> {
  readonly script?: readonly Step[];
  readonly faults?: readonly (Fault | undefined)[] | (() => Fault);
}

export async function openSdkWorld(program: Program, options: SdkWorldOptions = {}): Promise<SdkWorld> {
  const { script = [say("Hello."), say("Again."), say("Once more.")], faults } = options;
  const server = await startModelServer({ script, ...(faults === undefined ? {} : { faults }) });
  const fixture = await openFixture(program, server.url, { config: MOCK_CONFIG, ...options });
  return {
    fixture,
    server,
    thread: { workingDirectory: fixture.workspace },
    open: (more = {}) => new Codex({ codexPathOverride: program.file, env: { ...fixture.env }, ...more }),
    request: (number) => bodyOf(server.requests[number]?.body),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    },
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

interface Wire {
  readonly model?: string;
  readonly reasoning?: { readonly effort?: unknown };
  readonly text?: { readonly format?: unknown };
  readonly input?: readonly {
    readonly role?: string;
    readonly content?: readonly { readonly type: string; readonly text?: string }[];
  }[];
}

function bodyOf(body: unknown): RequestBody {
  // The server has parsed it and both programs speak the Responses wire; a missing field shows in the test.
  const wire = (body ?? {}) as Wire;
  const users = (wire.input ?? []).filter(({ role }) => role === "user");
  const textOf = (user: (typeof users)[number]): string => (user.content ?? []).map(({ text = "" }) => text).join("");
  return {
    model: wire.model ?? "",
    effort: wire.reasoning?.effort,
    format: wire.text?.format,
    images: users.flatMap(({ content = [] }) => content).filter(({ type }) => type === "input_image").length,
    prompts: users.map(textOf),
  };
}
