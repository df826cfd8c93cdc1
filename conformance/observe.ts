/** Plays one case through one program and writes down what came out, with everything that is different in each run blanked. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { startModelServer, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import type { ExecCase, Invocation } from "./exec-case.ts";
import { openFixture, type Fixture } from "./fixture.ts";
import { NO_HELPER, type Program } from "./program.ts";
import { instructionsIn, type Instructed } from "./instructions-in-request.ts";

/** What the model was asked first in an invocation, as far as it is the same for every program. */
export interface Asked {
  readonly model: string;
  readonly prompt: string;
  readonly images: number;
  readonly effort?: string;
  /** The tool with which the provider searches the web. */
  readonly search?: unknown;
  readonly format?: unknown;
  readonly instructed?: Instructed;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface RunSeen {
  readonly args: readonly string[];
  /** An exit code, the name of a signal, or `deadline`. */
  readonly exit: number | string;
  readonly stdout: string;
  readonly stderr: string;
  readonly requests: number;
  readonly asked?: Asked;
}

export interface CaseSeen {
  readonly id: string;
  readonly runs: readonly RunSeen[];
  readonly files: Readonly<Record<string, string | null>>;
}

/** No invocation takes longer unless its case says so. */
const DEADLINE_MS = 30_000;
/** A reader of records does not need more of a program's chatter. */
const MAX_STDERR_CHARS = 1_500;
const MAX_TEXT_CHARS = 2_000;

export async function observe(program: Program, execCase: ExecCase): Promise<CaseSeen> {
  const { faults } = execCase;
  // The script names paths of the fixture, which names the server's address.
  const opened: { fixture?: Fixture } = {};
  const isList = Array.isArray(faults);
  await using server = await startModelServer({
    respond: ({ answers, body }) => {
      const step = JSON.stringify(execCase.script?.[answers] ?? { text: "The script has ended." });
      return JSON.parse(opened.fixture?.fill(step.replaceAll('"{session}"', runningSession(body))) ?? "{}");
    },
    ...(faults === undefined
      ? {}
      : { faults: isList ? faults : () => faults as Exclude<typeof faults, readonly unknown[]> }),
  });
  await using fixture = await openFixture(program, server.url, execCase);
  opened.fixture = fixture;
  const names = new Map<string, string>();
  const runs: RunSeen[] = [];
  for (const invocation of execCase.runs) {
    const { deadlineMs = DEADLINE_MS, marks } = execCase;
    runs.push(await play({ program, invocation, fixture, server, names, deadlineMs, marks }));
  }
  const files: Record<string, string | null> = {};
  for (const name of execCase.looksAt ?? []) {
    const content = await fixture.look(name);
    files[name] = content === undefined ? null : fixture.blank(content);
  }
  return { id: execCase.id, runs, files };
}

/** The number by which a program told the model about a command that is still running; 0 when it told of none. */
function runningSession(body: unknown): string {
  const told = JSON.stringify(asList(asRecord(body)["input"]).at(-1) ?? "");
  return /session[^0-9]{0,20}(\d+)/i.exec(told)?.[1] ?? "0";
}

interface Playing {
  readonly program: Program;
  readonly invocation: Invocation;
  readonly fixture: Fixture;
  readonly server: ModelServer;
  /** Thread ids, and the words that stand for them. */
  readonly names: Map<string, string>;
  readonly deadlineMs: number;
  readonly marks: ExecCase["marks"];
}

async function play({ program, invocation, fixture, server, names, deadlineMs, marks }: Playing): Promise<RunSeen> {
  const { args, stdin, wrapper, env = {} } = invocation;
  const before = server.requests.length;
  const [thread = ""] = names.keys();
  const filled = Object.entries(env).map(([name, value]) => [name, fixture.fill(value)]);
  const words = [program.file, ...program.adapt(args.map((arg) => fixture.fill(arg, thread)))];
  const [file = "", ...rest] = wrapper === undefined ? words : ["sh", "-c", wrapper, "sh", ...words];
  const child = spawn(file, rest, {
    cwd: invocation.cwd === undefined ? fixture.workspace : fixture.fill(invocation.cwd),
    env: { ...fixture.env, ...Object.fromEntries(filled) },
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    // A group of its own, so that all of it can be ended.
    detached: true,
  });
  child.stdin?.on("error", () => undefined);
  if (typeof stdin === "string") child.stdin?.end(stdin);
  else if (stdin !== undefined && "bytes" in stdin) child.stdin?.end(Buffer.from(stdin.bytes));
  const seen = watchOutput(child, invocation);
  let isOver = false;
  const deadline = setTimeout(() => {
    isOver = true;
    endGroup(child);
  }, deadlineMs);
  await once(child, "exit");
  // What a command left running may hold the pipes open; its time is over too.
  endGroup(child);
  if (child.stdout?.closed !== true) await Promise.race([once(child, "close"), wait(1_000)]);
  clearTimeout(deadline);
  noteThreads(seen.stdout, names);
  const blank = (text: string): string => blankRun(fixture.blank(text), names);
  const asked = server.requests[before];
  return {
    args,
    exit: isOver ? "deadline" : (child.exitCode ?? child.signalCode ?? "unknown"),
    stdout: args.includes("--help") ? shown(seen.stdout) : blank(seen.stdout).split("\n").map(shortLine).join("\n"),
    stderr: blank(withoutRemarks(seen.stderr)).slice(0, MAX_STDERR_CHARS),
    requests: server.requests.length - before,
    ...(asked === undefined ? {} : { asked: askedOf(asked, { blank, args, marks }) }),
  };
}

/** What Codex says of the machine it runs on. */
function withoutRemarks(stderr: string): string {
  const lines = stderr.split("\n");
  return lines.filter((line) => !line.includes(NO_HELPER)).join("\n");
}

function watchOutput(child: ChildProcess, { isReaderGone, signal }: Invocation): { stdout: string; stderr: string } {
  const seen = { stdout: "", stderr: "" };
  let isSent = false;
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    seen.stdout += text;
    if (isReaderGone === true && seen.stdout.includes("\n")) {
      seen.stdout = seen.stdout.slice(0, seen.stdout.indexOf("\n") + 1);
      child.stdout?.destroy();
    }
    if (signal === undefined || isSent || !seen.stdout.includes(signal.after)) return;
    isSent = true;
    child.kill(signal.name);
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (seen.stderr += text));
  return seen;
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // Nobody is left.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function noteThreads(stdout: string, names: Map<string, string>): void {
  for (const [, id = ""] of stdout.matchAll(/"thread_id":"([^"]+)"/g)) {
    if (!names.has(id)) names.set(id, `{thread-${names.size + 1}}`);
  }
}

/** Ids, times and durations, which are never the same twice. */
function blankRun(text: string, names: ReadonlyMap<string, string>): string {
  let blanked = text;
  for (const [id, name] of names) blanked = blanked.replaceAll(id, name);
  return blanked
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "{id}")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, "{time}")
    .replaceAll(/\b[0-9a-f]{40}\b/g, "{sha}")
    .replaceAll(/\(\d+\) panicked/g, "({pid}) panicked")
    .replaceAll(/ in \d+(\.\d+)?m?s:/g, " in {duration}:")
    .replaceAll(/"duration_ms":\d+/g, '"duration_ms":0');
}

/** Long texts inside a JSON line keep their ends and their size; a torn line stays as it is. */
function shortLine(line: string): string {
  if (line.length <= MAX_TEXT_CHARS || !line.startsWith("{")) return line;
  try {
    return JSON.stringify(
      JSON.parse(line, (_key, value: unknown) => (typeof value === "string" ? shortText(value) : value)),
    );
  } catch {
    return `${line.slice(0, MAX_TEXT_CHARS)}{torn}`;
  }
}

function shortText(text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return text;
  return `${text.slice(0, 100)}{${text.length} characters}${text.slice(-100)}`;
}

/** Words that each program has of its own. */
function shown(text: string): string {
  return text === "" ? "" : "{own words}";
}

const OWN_HEADERS = ["authorization", "x-conformance", "x-conformance-env"];
const MAX_PROMPT_CHARS = 120;

function askedOf(
  request: RecordedRequest,
  { blank, args, marks }: { readonly blank: (text: string) => string } & Pick<RunSeen, "args"> & Pick<Playing, "marks">,
): Asked {
  const body = asRecord(request.body);
  const user = asList(body["input"])
    .map(asRecord)
    .filter((item) => item["role"] === "user")
    .at(-1);
  const parts = asList(user?.["content"]).map(asRecord);
  const text = parts.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
  const isOwnPrompt = args.includes("review");
  const effort = asRecord(body["reasoning"])["effort"];
  const format = asRecord(body["text"])["format"];
  const headers = OWN_HEADERS.map((name) => [name, request.headers[name]]).filter(([, value]) => value !== undefined);
  return {
    model: String(body["model"]),
    prompt: isOwnPrompt ? shown(text) : withoutTags(blank(text)).slice(0, MAX_PROMPT_CHARS),
    images: parts.filter((part) => part["type"] === "input_image").length,
    // What a model thinks by default is its catalogue's business; what a user asked for is compared.
    ...(typeof effort === "string" && args.join(" ").includes("effort") ? { effort } : {}),
    ...(/\bweb_search|--search/.test(args.join(" ")) ? { search: searchIn(body) } : {}),
    ...(format === undefined ? {} : { format }),
    ...(marks === undefined ? {} : { instructed: instructionsIn(body, marks, args.join(" ")) }),
    path: request.path,
    headers: Object.fromEntries(headers),
  };
}

/** What kind of content it finds is the model's business. */
function searchIn(body: Readonly<Record<string, unknown>>): unknown {
  const tool = asList(body["tools"])
    .map(asRecord)
    .find(({ type }) => type === "web_search");
  if (tool === undefined) return null;
  const { search_content_types: _types, ...asked } = tool;
  return Object.fromEntries(Object.entries(asked).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Codex writes the name of an attached image beside it. */
function withoutTags(text: string): string {
  return text.replaceAll(/<image name=[^>]*>|<\/image>/g, "");
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
