/**
 * Commands that stay open between calls, by the number that the model knows. The table owns them: it is bounded, a
 * command leaves it when its end was reported, and closing the table ends them all.
 */
import { HeddleError } from "@heddle/protocol";
import { CappedOutput, type OutputFilter, type OutputSnapshot } from "./output.ts";
import { startCommand, type OwnedProcess, type ProcessExit, type StartCommandOptions } from "./process.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** Dev servers, watchers and a REPL or two. */
const MAX_OPEN = 16;
const FIRST_ID = 1000;

type OpenCommandOptions = Pick<StartCommandOptions, "argv" | "cwd" | "env" | "stdin" | "sandbox" | "timeoutMs"> & {
  readonly command: string;
  /** Receives output from the first byte on, until another listener takes over. */
  readonly onText: (delta: string) => void;
};

export class ProcessTable implements AsyncDisposable {
  readonly #open = new Map<number, OpenCommand>();
  readonly #blobFolder: string;
  readonly #newFilter: (() => OutputFilter) | undefined;
  readonly #closing = new AbortController();
  #nextId = FIRST_ID;
  #starting = 0;

  constructor(blobFolder: string, newFilter?: () => OutputFilter) {
    this.#blobFolder = blobFolder;
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
      const { command: _command, onText, ...start } = options;
      const listener = { onText };
      const output = new CappedOutput({
        spillFolder: this.#blobFolder,
        filter: this.#newFilter?.(),
        onText: (delta) => listener.onText(delta),
      });
      const process = await startCommand({ ...start, output, signal: this.#closing.signal });
      const opened = new OpenCommand(id, options, Object.assign(listener, { output, process }));
      this.#open.set(id, opened);
      return opened;
    } finally {
      this.#starting -= 1;
    }
  }

  /** Its end was reported; the number is not used again. */
  forget(id: number): void {
    this.#open.delete(id);
  }

  /** Ends every open command, or those of one sandbox, and waits for it. */
  async killAll(sandbox?: Sandbox): Promise<void> {
    const commands = [...this.#open.values()].filter((command) => sandbox === undefined || command.sandbox === sandbox);
    for (const { id } of commands) this.#open.delete(id);
    await Promise.all(commands.map((command) => command.kill()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new HeddleError("tool.cancelled", "the thread is closed"));
    await this.killAll();
  }

  /** Ended commands leave the table, the oldest first, only when it is full. */
  #forgetEnded(): void {
    for (const [id, command] of this.#open) {
      if (this.#open.size < MAX_OPEN) return;
      if (!command.isRunning) this.#open.delete(id);
    }
  }
}

interface Parts {
  readonly output: CappedOutput;
  readonly process: OwnedProcess;
  onText: (delta: string) => void;
}

export class OpenCommand {
  readonly id: number;
  readonly command: string;
  readonly cwd: string;
  readonly hasInput: boolean;
  readonly sandbox: Sandbox;
  readonly #parts: Parts;
  /** Resolves after the last byte of output has been received. */
  readonly ended: Promise<ProcessExit>;
  /** The item of the call that started it is still open: output and end are reported there. */
  hasOpenItem = false;
  readonly #waiting = new Map<symbol, string>();

  constructor(id: number, options: OpenCommandOptions, parts: Parts) {
    this.id = id;
    this.command = options.command;
    this.cwd = options.cwd;
    this.hasInput = options.stdin === "pipe";
    this.sandbox = options.sandbox;
    this.#parts = parts;
    this.ended = this.#finish();
  }

  get isRunning(): boolean {
    return this.#parts.process.isRunning;
  }

  /** The outermost process, in the host's numbers. */
  get pid(): number {
    return this.#parts.process.pid;
  }

  /** Items of the calls that wait for it now; none: it runs in the background. */
  get awaitedBy(): readonly string[] {
    return [...this.#waiting.values()];
  }

  /** A call waits for it until this is disposed. */
  await(itemId: string): Disposable {
    const wait = Symbol(itemId);
    this.#waiting.set(wait, itemId);
    return { [Symbol.dispose]: () => void this.#waiting.delete(wait) };
  }

  /** Replaces the listener for live output; undefined: none. */
  listen(onText: ((delta: string) => void) | undefined): void {
    this.#parts.onText = onText ?? (() => undefined);
  }

  take(): { readonly text: string; readonly truncatedBytes: number } {
    return this.#parts.output.take();
  }

  snapshot(): OutputSnapshot {
    return this.#parts.output.snapshot();
  }

  async write(text: string): Promise<void> {
    await this.#parts.process.write(text);
  }

  endInput(): void {
    this.#parts.process.endInput();
  }

  /** Like Ctrl-C: the command may ignore it. */
  interrupt(): void {
    this.#parts.process.interrupt();
  }

  async kill(): Promise<void> {
    await this.#parts.process.kill();
    await this.ended;
  }

  async #finish(): Promise<ProcessExit> {
    const exit = await this.#parts.process.exited;
    await this.#parts.output.close();
    return exit;
  }
}
