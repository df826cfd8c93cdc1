/**
 * The process of an agent program, in one place for all of them: in the sandbox of its turn, in a process group of its own,
 * with its wire framed, bounded and written down. It does not outlive its turn.
 *
 *   started ─▶ speaking ─▶ input closed ─▶ exited               a turn that has ended
 *                  ├──▶ told to stop (its own way) ─▶ TERM ─▶ KILL   an interrupt: each step a moment after the last
 *                  └──▶ exited by itself                          `runner.exited`, with the end of what it printed for people
 */
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redactor } from "@heddle/journal";
import { defined, HeddleError, type AgentEnd } from "@heddle/protocol";
import { startCommand, type OwnedProcess, type Sandbox, type StartCommandOptions } from "@heddle/tools";
import { HeadTail, readLines } from "@heddle/tools/lines";
import { openTranscript, type Transcript } from "./transcript.ts";

/** Pictures and whole files come in one line. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const STDERR_HEAD_BYTES = 2 * 1024;
const STDERR_TAIL_BYTES = 62 * 1024;
/** Of it, in a message for people. */
const MAX_TOLD_CHARS = 2000;
/** A program that was told that its input has ended stores its record and exits. */
const LEAVE_MS = 1500;

export interface StartAgent {
  readonly runner: string;
  readonly turnId: string;
  readonly sandbox: Sandbox;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly transcriptFile: string;
  readonly redactor: Pick<Redactor, "text">;
  /** Called with every byte that comes. */
  readonly onActivity: () => void;
}

export interface AgentExit {
  readonly end: AgentEnd;
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

export interface AgentProcess extends AsyncDisposable {
  readonly pid: number;
  /** Lines of its output, in order, without the newline. Ends with its output; a line above the cap is an error. */
  readonly lines: AsyncIterable<string>;
  send(line: string): Promise<void>;
  /** The last that it is given, without a newline. */
  finish(text: string): Promise<void>;
  /** When the process and everything it started has ended. Never rejects. */
  readonly exited: Promise<AgentExit>;
  /** What went wrong, for a message: how it exited, and the end of what it printed for people. */
  whyExited(): Promise<HeddleError>;
  /** Lets it leave, and ends it when it does not. */
  close(): Promise<AgentExit>;
  /** Ends it now: TERM, then KILL. */
  kill(): Promise<AgentExit>;
}

export async function startAgent(options: StartAgent): Promise<AgentProcess> {
  const { sandbox, argv, cwd, env, redactor } = options;
  const transcript = openTranscript(options.transcriptFile, redactor);
  const output = new PassThrough();
  const errors = createErrors(transcript);
  try {
    const owned = await startCommand({
      sandbox,
      argv,
      cwd,
      env,
      stdin: "pipe",
      owner: options.turnId,
      // It is ended by whoever holds it, step by step.
      signal: new AbortController().signal,
      onOutputEnd: () => output.end(),
      ...sinksOf(output, errors, options.onActivity),
    });
    return agentProcess(options, { owned, output, errors, transcript });
  } catch (error) {
    await transcript[Symbol.asyncDispose]();
    throw error;
  }
}

function sinksOf(
  output: PassThrough,
  errors: Errors,
  onActivity: () => void,
): Pick<StartCommandOptions, "output" | "errors"> {
  let behind = Promise.withResolvers<void>();
  const goOn = (): void => behind.resolve();
  output.on("drain", goOn).on("close", goOn);
  return {
    output: {
      push(chunk) {
        onActivity();
        if (output.writableEnded || output.destroyed || output.write(Buffer.from(chunk))) return;
        behind = Promise.withResolvers<void>();
        return behind.promise;
      },
    },
    errors: {
      push(chunk) {
        onActivity();
        return errors.push(chunk);
      },
    },
  };
}

interface Parts {
  readonly owned: OwnedProcess;
  readonly output: PassThrough;
  readonly errors: Errors;
  readonly transcript: Transcript;
}

function agentProcess({ runner, redactor }: StartAgent, { owned, output, errors, transcript }: Parts): AgentProcess {
  let wanted: AgentEnd = "exited";
  const exited = owned.exited.then(async ({ exitCode, signal }): Promise<AgentExit> => {
    await errors.end();
    return { end: wanted, exitCode, signal };
  });

  async function end(how: AgentEnd): Promise<AgentExit> {
    if (wanted === "exited" && owned.isRunning) wanted = how;
    // Nobody reads on; what comes is dropped, so that the process is not held up.
    output.resume();
    await owned.kill();
    const exit = await exited;
    await transcript[Symbol.asyncDispose]();
    return exit;
  }

  return {
    pid: owned.pid,
    exited,
    lines: textLines(output, transcript),
    async send(line) {
      await transcript.add("in", line);
      await owned.write(`${line}\n`);
    },
    async finish(text) {
      await transcript.add("in", text);
      await owned.write(text);
      owned.endInput();
    },
    async whyExited() {
      const exit = await exited;
      return exitError(runner, exit, redactor.text(errors.text()));
    },
    async close() {
      if (owned.isRunning) wanted = "stopped";
      owned.endInput();
      output.resume();
      const giveUp = new AbortController();
      await Promise.race([exited, sleep(LEAVE_MS, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
      giveUp.abort();
      return end("stopped");
    },
    kill: () => end("killed"),
    [Symbol.asyncDispose]: async () => void (await end("killed")),
  };
}

function exitError(runner: string, { exitCode, signal }: AgentExit, said: string): HeddleError {
  const how = exitCode === undefined ? `was ended by ${signal ?? "a signal"}` : `exited with code ${exitCode}`;
  const message = `the program of ${runner} ${how} before the turn was over${said === "" ? "" : `: ${said}`}`;
  return new HeddleError("runner.exited", message, { details: { runner, ...defined({ exitCode, signal }) } });
}

async function* textLines(output: PassThrough, transcript: Transcript): AsyncGenerator<string, void, undefined> {
  for await (const line of readLines(output, { maxLineBytes: MAX_LINE_BYTES })) {
    if (line.kind === "lineTooLong") {
      await transcript.add("out", `(a line of ${line.bytes} bytes)`);
      throw line.error;
    }
    await transcript.add("out", line.text);
    if (line.text.trim() !== "") yield line.text;
  }
}

type Errors = ReturnType<typeof createErrors>;

/** The beginning says what is wrong with the start, the end what came last. */
function createErrors(transcript: Transcript) {
  const kept = new HeadTail(STDERR_HEAD_BYTES, STDERR_TAIL_BYTES);
  const stream = new PassThrough();
  const written = (async () => {
    for await (const line of readLines(stream)) if (line.kind !== "lineTooLong") await transcript.add("err", line.text);
  })().catch(() => undefined);
  return {
    push(chunk: Buffer): void | Promise<void> {
      const copy = Buffer.from(chunk);
      kept.push(copy);
      if (stream.write(copy)) return;
      return new Promise((resolve) => void stream.once("drain", resolve));
    },
    text: (): string => kept.read().text.trim().slice(-MAX_TOLD_CHARS),
    async end(): Promise<void> {
      stream.end();
      await written;
    },
  };
}
