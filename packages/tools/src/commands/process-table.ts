/**
 * Commands that stay open between calls, by the number the model knows. The table owns them: it is bounded, a command leaves
 * it when it has ended and its end was told, and closing the table ends them all.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { CappedOutput, type OutputFilter, type OutputSnapshot } from "./output.ts";
import { startCommand, type OwnedProcess, type ProcessExit } from "./process.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** Dev servers, watchers and a REPL or two; a model that needs more has lost count. */
const MAX_OPEN = 16;
const FIRST_ID = 1000;

export interface OpenCommandOptions {
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: "ignore" | "pipe";
  readonly sandbox: Sandbox;
  readonly timeoutMs?: number;
  /** Hears output from the first byte on, until another listener takes over. */
  readonly onText: (delta: string) => void;
}

export class ProcessTable implements AsyncDisposable {
  readonly #open = new Map<number, OpenCommand>();
  readonly #spillDir: string;
  readonly #newFilter: (() => OutputFilter) | undefined;
  readonly #closing = new AbortController();
  #nextId = FIRST_ID;
  #starting = 0;

  constructor(spillDir: string, newFilter?: () => OutputFilter) {
    this.#spillDir = spillDir;
    this.#newFilter = newFilter;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: number): OpenCommand | undefined {
    return this.#open.get(id);
  }

  get running(): readonly OpenCommand[] {
    return [...this.#open.values()].filter(({ isRunning }) => isRunning);
  }

  async start(options: OpenCommandOptions): Promise<OpenCommand> {
    this.#closing.signal.throwIfAborted();
    this.#forgetEnded();
    if (this.#open.size + this.#starting >= MAX_OPEN) {
      const ids = [...this.#open.keys()].join(", ");
      throw new HeddleError(
        "limit.reached",
        `${MAX_OPEN} commands are still running (${ids}); end one by sending it \\u0003 before starting another`,
      );
    }
    this.#starting += 1;
    try {
      const id = this.#nextId;
      this.#nextId += 1;
      const spillFile = join(this.#spillDir, `output-${id}-${randomUUID()}.txt`);
      const command = await OpenCommand.start(id, {
        ...options,
        spillFile,
        filter: this.#newFilter?.(),
        signal: this.#closing.signal,
      });
      this.#open.set(id, command);
      return command;
    } finally {
      this.#starting -= 1;
    }
  }

  /** The end of a command was told; its number is not used again. */
  forget(id: number): void {
    this.#open.delete(id);
  }

  /** Ends every open command, or those in one sandbox, and waits until they are gone. */
  async killAll(sandbox?: Sandbox): Promise<void> {
    const commands = [...this.#open.values()].filter((command) => sandbox === undefined || command.sandbox === sandbox);
    for (const { id } of commands) this.#open.delete(id);
    await Promise.all(commands.map((command) => command.kill()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new HeddleError("tool.cancelled", "the thread is closed"));
    await this.killAll();
  }

  /** Ended commands that nobody asked about give up their place, the oldest first, only when places run out. */
  #forgetEnded(): void {
    for (const [id, command] of this.#open) {
      if (this.#open.size < MAX_OPEN) return;
      if (!command.isRunning) this.#open.delete(id);
    }
  }
}

interface StartOptions extends OpenCommandOptions {
  readonly spillFile: string;
  readonly filter: OutputFilter | undefined;
  readonly signal: AbortSignal;
}

export class OpenCommand {
  readonly id: number;
  readonly command: string;
  readonly cwd: string;
  readonly hasInput: boolean;
  /** That it runs in. */
  readonly sandbox: Sandbox;
  readonly #output: CappedOutput;
  readonly #process: OwnedProcess;
  readonly #listener: { hear: (delta: string) => void };
  /** Resolves after the last byte of output has been taken in. */
  readonly ended: Promise<ProcessExit>;
  /** The item of the call that started it is still open: it hears the output, and its end tells how the command ended. */
  hasOpenItem = false;
  readonly #waiting = new Map<symbol, string>();

  private constructor(
    id: number,
    options: StartOptions,
    parts: { output: CappedOutput; process: OwnedProcess; listener: { hear: (delta: string) => void } },
  ) {
    this.id = id;
    this.command = options.command;
    this.cwd = options.cwd;
    this.hasInput = options.stdin === "pipe";
    this.sandbox = options.sandbox;
    this.#output = parts.output;
    this.#process = parts.process;
    this.#listener = parts.listener;
    this.ended = this.#finish();
  }

  static async start(id: number, options: StartOptions): Promise<OpenCommand> {
    const listener = { hear: options.onText };
    const { spillFile, filter } = options;
    const output = new CappedOutput({ spillFile, filter, onText: (delta) => listener.hear(delta) });
    const { sandbox, argv, cwd, env, stdin, signal, timeoutMs } = options;
    const process = await startCommand({
      sandbox,
      argv,
      cwd,
      env,
      stdin,
      output,
      signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    return new OpenCommand(id, options, { output, process, listener });
  }

  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** Of the process that carries it, as the host numbers it. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Items of the calls that wait for it at this moment; none: it runs in the background. */
  get awaitedBy(): readonly string[] {
    return [...this.#waiting.values()];
  }

  /** A call waits for it, as long as the returned is not disposed. */
  await(itemId: string): Disposable {
    const wait = Symbol(itemId);
    this.#waiting.set(wait, itemId);
    return { [Symbol.dispose]: () => void this.#waiting.delete(wait) };
  }

  /** From now on this one hears the live output; undefined: nobody. */
  listen(onText: ((delta: string) => void) | undefined): void {
    this.#listener.hear = onText ?? (() => undefined);
  }

  /** What came since the last take. */
  take(): { readonly text: string; readonly truncatedBytes: number } {
    return this.#output.take();
  }

  snapshot(): OutputSnapshot {
    return this.#output.snapshot();
  }

  async write(text: string): Promise<void> {
    await this.#process.write(text);
  }

  endInput(): void {
    this.#process.endInput();
  }

  /** What Ctrl-C does: asks the command to stop, which it may answer or ignore. */
  interrupt(): void {
    this.#process.interrupt();
  }

  async kill(): Promise<void> {
    await this.#process.kill();
    await this.ended;
  }

  async #finish(): Promise<ProcessExit> {
    const exit = await this.#process.exited;
    await this.#output.close();
    return exit;
  }
}
