/** A process and the conversation with it, for one turn: opened, read to its end, and ended with the turn. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Journal } from "@heddle/journal";
import { clockMs, defined, HeddleError, reasonOf, toHeddleError, type EventOf } from "@heddle/protocol";
import { requireAsking } from "../abilities.ts";
import { agentStarted } from "../agent-started.ts";
import { toFailure } from "../../turns/outcome.ts";
import type { TurnIo, TurnRequest } from "../runner.ts";
import { startAgent, type AgentExit, type AgentProcess } from "./agent-process.ts";
import type { Conversation, Dialect, KnownHandle, LaunchedTurn, ProgramTurn, Wire } from "./conversation.ts";
import { requireNoSandbox, requireProgram, versionOf, type AgentProgram } from "./find-program.ts";
import { liveDoorOf, type LiveDoor } from "./live-door.ts";
import { PASSWORD } from "./opencode-forwarder.ts";
import { sandboxFor, type ProgramSandbox } from "./sandbox-of-program.ts";

export interface LinkOptions {
  readonly program: AgentProgram;
  readonly dialect: Dialect;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly journal: Journal;
}

export interface Link {
  readonly conversation: Conversation;
  /** Rejects when the program ends, or says what cannot be read, before it was told to leave. */
  readonly lost: Promise<never>;
  /** When something last came. */
  readonly activeAt: number;
  end(how: "close" | "kill"): Promise<void>;
}

export interface Linking {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly handle: KnownHandle | undefined;
  readonly isInstead: boolean;
  readonly model: string | undefined;
  /** Everything of the turn that does not depend on its process. */
  readonly rest: Omit<ProgramTurn, keyof LaunchedTurn | "version" | "sandboxLevel" | "unknown">;
}

/** A program that closes its output ends soon. */
const CLOSED_MS = 2000;

export async function openLink(
  options: LinkOptions,
  { turn, io, handle, isInstead, model, rest }: Linking,
): Promise<Link> {
  const { program, dialect, env, home, journal } = options;
  const { settings, workspace, sandboxContext, turnId, threadId } = turn;
  const { runner, server } = program;
  requireNoSandbox(program, sandboxContext.envelope.sandbox === "off");
  requireAsking({ name: runner, ...dialect }, sandboxContext.envelope);
  const path = server === undefined ? requireProgram(program, env) : process.execPath;
  const version = server === undefined ? await versionOf(path, env, io.signal) : undefined;
  const confined = sandboxFor(sandboxContext.envelope, program, { path, env, workspace });
  const { sandbox } = await sandboxContext.widen(confined.envelope, confined.visible);
  const { envelope } = sandboxContext;
  const newHandle = randomUUID();
  const launched: LaunchedTurn = { settings, envelope, workspace, model, handle, newHandle, isInstead };
  const { args, variables } = dialect.launch(launched);
  const argv = server === undefined ? [path, ...program.args, ...args] : [server.url];
  const target = server === undefined ? { command: argv } : { server };
  const transcript = join("outputs", threadId, "agents", `${turnId}.jsonl`);
  const { forwarder } = dialect;
  const door = forwarder && liveDoorOf({ program, home, turnId });
  // Its own start is not Heddle's.
  turn.watch?.[Symbol.dispose]();
  let activeAt = clockMs();
  const ahead = io.ahead?.();
  const agent = await startAgent({
    runner,
    turnId,
    sandbox,
    argv: forwarder?.(workspace, target, door?.socket) ?? argv,
    cwd: workspace,
    env: {
      ...sandboxContext.state.environment,
      ...program.variables(program.folders),
      ...variables,
      ...ownVariables(program, env),
      ...(forwarder !== undefined && server === undefined ? passwordFor(door) : {}),
    },
    transcriptFile: join(home, transcript),
    redactor: journal.redactor,
    onActivity() {
      activeAt = clockMs();
      ahead?.received();
    },
  });
  const unknown = new Map<string, number>();
  let conversation: Conversation | undefined;
  const isOver = (): boolean => conversation?.isOver === true;
  const ends = endings({ turn, io, runner, process: agent, confined, unknown, isOver, door });
  try {
    const started = agentStarted({ turn, runner, argv, pid: agent.pid, envelope: confined.envelope });
    await io.record([{ ...started, ...defined({ version }), transcript }]);
    const known: ProgramTurn = {
      ...rest,
      ...launched,
      version,
      sandboxLevel: sandbox.level,
      unknown: (kind) => count(unknown, kind),
      async connected(found) {
        await rest.connected(found);
        await door?.open(found.handle);
      },
    };
    const speaking = dialect.open(wireTo(agent), known);
    conversation = speaking;
    const lost = read(agent, speaking, { runner, unknown: known.unknown });
    lost.catch(() => undefined);
    return {
      conversation: speaking,
      lost,
      get activeAt() {
        return activeAt;
      },
      end: ends,
    };
  } catch (error) {
    await ends("kill");
    throw error;
  }
}

/** Of the server that the forwarder starts; for this turn alone. */
function passwordFor(door: LiveDoor | undefined): Readonly<Record<string, string>> {
  return { [PASSWORD]: door?.password ?? randomUUID() };
}

function ownVariables({ env: names }: AgentProgram, env: LinkOptions["env"]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

/** Different kinds; a program that makes them up must not fill the record. */
const MAX_KINDS = 50;

function count(unknown: Map<string, number>, kind: string): void {
  const name = unknown.has(kind) || unknown.size < MAX_KINDS ? kind.slice(0, 100) : "others";
  unknown.set(name, (unknown.get(name) ?? 0) + 1);
}

function wireTo(process: AgentProcess): Wire {
  return {
    send: (message) => process.send(JSON.stringify(message)),
    finish: (text) => process.finish(text),
  };
}

async function read(
  process: AgentProcess,
  conversation: Conversation,
  { runner, unknown }: { readonly runner: string; readonly unknown: (kind: string) => void },
): Promise<never> {
  let failure: HeddleError;
  try {
    for await (const line of process.lines) {
      const message = parsed(line, runner);
      if (message === undefined) unknown("text");
      else await conversation.receive(message);
    }
    const isOver = process.exited.then(() => true);
    const giveUp = new AbortController();
    const late = sleep(CLOSED_MS, false, { signal: giveUp.signal }).catch(() => false);
    if (!(await Promise.race([isOver, late]))) await process.kill();
    giveUp.abort();
    failure = await process.whyExited();
  } catch (error) {
    failure = toHeddleError(error, "runner.failed");
  }
  throw conversation.lost(failure) ?? failure;
}

/** Programs print warnings between their messages. What begins like a message and is none may have been the last one. */
function parsed(line: string, runner: string): unknown {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch (error) {
    const message = `${runner} sent a message that cannot be read: ${reasonOf(error)}`;
    throw new HeddleError("runner.malformed", message, { cause: error, details: { runner, bytes: line.length } });
  }
}

interface Ending {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly runner: string;
  readonly process: AgentProcess;
  readonly confined: ProgramSandbox;
  readonly unknown: ReadonlyMap<string, number>;
  /** Its conversation has told its end. */
  readonly isOver: () => boolean;
  /** undefined: nobody can join. */
  readonly door: LiveDoor | undefined;
}

/** Once, and on record: how the process ended, and what was found in its sandbox. */
function endings(ending: Ending): Link["end"] {
  let ended: Promise<void> | undefined;
  return (how) => (ended ??= endOnce(ending, how));
}

async function endOnce(ending: Ending, how: "close" | "kill"): Promise<void> {
  const { turn, io, runner, process, confined, unknown, isOver, door } = ending;
  const { turnId } = turn;
  await door?.close();
  const exit: AgentExit = await (how === "close" ? process.close() : process.kill());
  const { exitCode, signal } = exit;
  const end = exit.end === "exited" && isOver() ? "stopped" : exit.end;
  const violations = await turn.sandboxContext.narrow(confined.envelope);
  const failure = end === "exited" ? toFailure(await process.whyExited()) : undefined;
  await io.record([
    ...violations.map((violation): EventOf<"path.violated"> => ({ type: "path.violated", v: 1, turnId, ...violation })),
    {
      type: "agent.ended",
      v: 1,
      turnId,
      runner,
      pid: process.pid,
      end,
      ...defined({ exitCode, signal, failure }),
      ...(unknown.size === 0 ? {} : { unknown: Object.fromEntries(unknown) }),
    },
  ]);
}
