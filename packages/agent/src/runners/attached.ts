/**
 * A person takes a thread over, in the own interface of its agent's program: a turn of the thread whose agent is that person. So
 * nobody else starts a turn or the program meanwhile, every door shows it, and it has one end. The program has the terminal and no
 * sandbox; what was said and done there is read from its own record afterwards.
 *
 *   admitted ─▶ program has the terminal ─▶ it ends by itself ─▶ its record is imported ─▶ completed | failed: it could not work
 *                       └▶ interrupted at any door, or its Heddle is told to end: TERM ─▶ KILL ─▶ imported ─▶ interrupted
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { defined, HeddleError, isHeddleError, reasonOf, type AgentEnd, type By, type EventOf } from "@heddle/protocol";
import { endProcess, readProcStat } from "@heddle/tools";
import type { Heddle, HeddleOptions, TurnHandle } from "../heddle.ts";
import { toFailure } from "../turns/outcome.ts";
import { capabilities } from "./abilities.ts";
import { agentStarted } from "./agent-started.ts";
import type { BeginTurn } from "./by-others.ts";
import { OWN_HEALTH } from "./own-health.ts";
import {
  programByHand,
  programOf,
  requireProgram,
  requireVersion,
  resumeCommand,
  type AgentProgram,
} from "./programs/find-program.ts";
import { lastConnected } from "./programs/handle.ts";
import { importRecord, type Imported } from "./programs/import-record.ts";
import { markRecord } from "./programs/own-record.ts";
import { requireTakeover } from "./programs/takeover.ts";
import type { Runner, TurnIo, TurnOutcome, TurnRequest } from "./runner.ts";

/** Between TERM and KILL. */
const TERM_MS = 2000;
/** Of a program that was interrupted at its terminal. */
const BY_CTRL_C = 130;

export interface AttachThread {
  readonly threadId: string;
  /** Descriptors of a terminal, for what the program reads, writes and complains. */
  readonly terminal: readonly [number, number, number];
  /** Of the owner's configuration, for a thread that has none of its own. */
  readonly ceiling?: string | undefined;
}

export interface AttachedTurns {
  readonly runner: Runner;
  attach(given: AttachThread & By): Promise<TurnHandle>;
}

interface AttachedOptions {
  readonly heddle: Heddle;
  readonly options: Pick<HeddleOptions, "env" | "runners">;
  readonly begin: BeginTurn;
}

export function createAttachedTurns({ heddle, options, begin }: AttachedOptions): AttachedTurns {
  const { journal } = heddle;
  /** By thread: there is one turn at a time. */
  const terminals = new Map<string, AttachThread["terminal"]>();
  const programFor = (runner: string): AgentProgram => programOf(runner, options.runners?.[runner] ?? {}, options.env);

  async function attach({ threadId, terminal, ceiling, by }: AttachThread & By): Promise<TurnHandle> {
    const takeover = await requireTakeover(journal, threadId);
    const last = await heddle.lastSettings(threadId);
    const settings = last && { ...defined({ ceiling }), ...last };
    const program = programByHand(programFor(settings?.runner ?? ""));
    await requireVersion(program, requireProgram(program, options.env), options.env);
    if (settings === undefined || terminals.has(threadId))
      throw new HeddleError("turn.active", `a person has taken thread ${threadId} over`);
    terminals.set(threadId, terminal);
    const forget = (): void => void terminals.delete(threadId);
    try {
      if ((await journal.threads.get(threadId))?.parent !== undefined)
        throw new HeddleError("ceiling.exceeded", "a child thread has no more than its parent, and never no sandbox");
      const handle = await begin({ thread: threadId, input: [], settings, task: "attached", by });
      void handle.done.then(forget, forget);
      return handle;
    } catch (error) {
      forget();
      if (!isHeddleError(error) || error.code !== "ceiling.exceeded") throw error;
      const message = `${error.message}; a person's own interface runs outside the sandbox, so Heddle does not start it: ${takeover.command} --print prints the command to run by hand`;
      throw new HeddleError("ceiling.exceeded", message, { cause: error, details: error.details });
    }
  }

  async function run(turn: TurnRequest, io: TurnIo): Promise<TurnOutcome> {
    const terminal = terminals.get(turn.threadId);
    if (terminal === undefined) throw new HeddleError("internal", `turn ${turn.turnId} has no terminal`);
    const program = programByHand(programFor(turn.settings.runner ?? ""));
    const connected = await lastConnected(journal, turn.threadId, program.runner);
    const resume = connected && resumeCommand(program, connected.handle);
    if (connected === undefined || resume === undefined)
      throw new HeddleError("runner.unsupported", `the runner ${program.runner} has no conversation to resume`);
    const { handle } = connected;
    const argv = [requireProgram(program, options.env), ...resume.slice(1)];
    const mark = await markRecord(program, handle);
    turn.watch?.[Symbol.dispose]();
    const child = await start(argv, { turn, program, terminal, env: options.env });
    const ending = await during(child, io, async () => {
      const { runner } = program;
      await io.record([
        agentStarted({ turn, runner, argv, pid: child.pid ?? 0, envelope: turn.sandboxContext.envelope }),
        {
          type: "agent.connected",
          v: 1,
          turnId: turn.turnId,
          runner,
          handle,
          origin: "resumed",
          resumeCommand: [...resume],
        },
      ]);
    });
    const imported = await importRecord({ turn, io, program, mark });
    await io.record([endedEvent({ turn, program, pid: child.pid ?? 0, ...ending, imported })]);
    return outcomeOf(program, ending, imported);
  }

  return {
    attach,
    runner: {
      name: "attached",
      capabilities: capabilities(),
      probe: () => Promise.resolve(OWN_HEALTH),
      check: () => Promise.resolve(),
      run,
    },
  };
}

interface Starting {
  readonly turn: TurnRequest;
  readonly program: AgentProgram;
  readonly terminal: AttachThread["terminal"];
  readonly env: HeddleOptions["env"];
}

/** In the group of Heddle: what is typed to interrupt goes to the program. */
async function start(argv: readonly string[], { turn, program, terminal, env }: Starting): Promise<ChildProcess> {
  const [file = "", ...args] = argv;
  const own = program.env.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const child = spawn(file, args, {
    cwd: turn.workspace,
    env: {
      ...turn.sandboxContext.state.environment,
      ...program.variables(program.folders),
      ...Object.fromEntries(own),
    },
    stdio: [...terminal],
  });
  try {
    await once(child, "spawn");
  } catch (error) {
    const message = `the program of ${program.runner} could not be started: ${reasonOf(error)}`;
    throw new HeddleError("runner.failed", message, { cause: error });
  }
  return child;
}

interface Ending {
  readonly end: AgentEnd;
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

/** To its end, which an interrupt brings about, and a record that cannot be written. */
async function during(child: ChildProcess, io: TurnIo, begun: () => Promise<void>): Promise<Ending> {
  const pid = child.pid ?? 0;
  const startTicks = readProcStat(pid)?.startTicks ?? "";
  const exited = once(child, "exit");
  let end: AgentEnd = "exited";
  let ended: Promise<unknown> | undefined;
  const stop = (): void => {
    if (child.exitCode === null && child.signalCode === null) end = "killed";
    ended ??= endProcess({ pid, startTicks }, TERM_MS);
  };
  io.signal.addEventListener("abort", stop, { once: true });
  if (io.signal.aborted) stop();
  try {
    await begun();
  } catch (error) {
    stop();
    await ended;
    throw error;
  }
  const [exitCode, signal]: unknown[] = await exited;
  await ended;
  io.signal.removeEventListener("abort", stop);
  return {
    end,
    exitCode: typeof exitCode === "number" ? exitCode : undefined,
    signal: typeof signal === "string" ? signal : undefined,
  };
}

interface Ended extends Ending {
  readonly turn: TurnRequest;
  readonly program: AgentProgram;
  readonly pid: number;
  readonly imported: Imported;
}

function endedEvent({ turn, program, pid, end, exitCode, signal, imported }: Ended): EventOf<"agent.ended"> {
  const unknown = Object.fromEntries(imported.unknown);
  return {
    type: "agent.ended",
    v: 1,
    turnId: turn.turnId,
    runner: program.runner,
    pid,
    end,
    ...defined({ exitCode, signal }),
    ...(imported.unknown.size === 0 ? {} : { unknown }),
  };
}

function outcomeOf({ runner }: AgentProgram, { end, exitCode, signal }: Ending, { spent }: Imported): TurnOutcome {
  if (end === "killed") return { kind: "interrupted", spent };
  const isLeft = exitCode === 0 || exitCode === BY_CTRL_C || signal === "SIGINT";
  const how = exitCode === undefined ? (signal ?? "a signal") : `exit code ${exitCode}`;
  if (isLeft) return { kind: "completed", spent, native: { reason: how, confidence: "certain" } };
  const failure = new HeddleError("runner.exited", `the program of ${runner} ended with ${how} in the terminal`);
  return { kind: "failed", failure: toFailure(failure), spent };
}
