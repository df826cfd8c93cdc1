/**
 * The prompt, as `codex exec` reads it: an argument, with piped input appended in a `<stdin>` block; or standard input alone.
 * One thing is different: with an argument, a pipe that stays open and silent holds up nobody. Its first byte is awaited
 * from the start of the process, beside everything else, and only for a moment.
 */
import { fstatSync } from "node:fs";
import { setTimeout as setTimeoutAsync } from "node:timers/promises";
import { HeddleError, toHeddleError } from "@heddle/protocol";
import { isSecondPrompt } from "./exec/request.ts";

/** Far more than any model reads; a stream without end must not fill the memory. */
const MAX_PROMPT_BYTES = 8 * 1024 * 1024;

/** Counted from the start of the process. A producer started beside this one has said something by then. */
const FIRST_BYTE_MS = 200;
/** Even a late start looks once at what is waiting in the pipe. */
const LEAST_WAIT_MS = 20;

export interface PromptSource {
  /** What stands in the place of the prompt, and a `-` after it. */
  readonly words: readonly string[];
  readonly stdin: NodeJS.ReadStream;
  /** Ends the wait for standard input. */
  readonly signal: AbortSignal;
  /** Says on stderr what is being waited for, or left out. */
  readonly notify: (text: string) => void;
}

/** What standard input brings to a prompt; nothing is thrown before it is asked for. */
export interface PromptReading {
  prompt(): Promise<string>;
}

/** Begins to listen at once; the waiting is done by the time the rest of a run is prepared. */
export function beginPrompt(source: PromptSource): PromptReading {
  const [first, second] = source.words;
  if (isSecondPrompt(source.words)) {
    const quoted = `heddle exec "${source.words.join(" ")}"`;
    return refused(new HeddleError("usage.invalid", `one prompt is expected; put it in quotes: ${quoted}`));
  }
  const argument = first === undefined || first === "-" ? undefined : checkedArgument(first);
  if (argument instanceof HeddleError) return refused(argument);
  // Making a stream of standard input takes longer than seeing that nothing can come from it.
  if (argument !== undefined && second === undefined && isNullDevice()) return { prompt: async () => argument };
  const { stdin, notify } = source;
  if (first === undefined && stdin.isTTY) {
    return refused(new HeddleError("prompt.empty", `give a prompt: heddle exec "what to do", or pipe it in`));
  }
  if (argument === undefined) {
    if (first === undefined) notify("Reading prompt from stdin...");
    return settling(async () => checkedText(decode(await readAll(source), "the prompt on standard input"), "stdin"));
  }
  if (second === "-") return settling(async () => withInput(argument, decode(await readAll(source), "standard input")));
  if (stdin.isTTY) return { prompt: () => Promise.resolve(argument) };
  return settling(async (isAsked) => {
    const bytes = await readIfThere(source, isAsked);
    return withInput(argument, bytes === undefined ? "" : decode(bytes, "standard input"));
  });
}

function refused(error: HeddleError): PromptReading {
  return { prompt: () => Promise.reject(error) };
}

/** Starts now, and keeps a failure until somebody asks. */
function settling(read: (isAsked: Promise<void>) => Promise<string>): PromptReading {
  const asked = Promise.withResolvers<void>();
  const reading = read(asked.promise);
  reading.catch(() => undefined);
  return {
    prompt() {
      asked.resolve();
      return reading;
    },
  };
}

function withInput(prompt: string, input: string): string {
  if (input.trim() === "") return prompt;
  return `${prompt}\n\n<stdin>\n${input}${input.endsWith("\n") ? "" : "\n"}</stdin>`;
}

/** A file ends by itself; a pipe may stay open for ever, so it must begin to speak in time. */
async function readIfThere(source: PromptSource, isAsked: Promise<void>): Promise<Buffer | undefined> {
  const { stdin, notify } = source;
  if (!isPipe()) return await readAll(source);
  const waitMs = Math.max(LEAST_WAIT_MS, FIRST_BYTE_MS - process.uptime() * 1000);
  // On a busy machine everything takes longer, the producer too: nobody gives up on it before the prompt is wanted.
  const spoke = await firstByte(stdin, Promise.all([setTimeoutAsync(waitMs), isAsked]));
  if (spoke === "ended") return undefined;
  if (spoke === "bytes") {
    notify("Reading additional input from stdin...");
    return readAll(source);
  }
  stdin.pause().unref();
  notify("standard input is open but silent: going on without it; `PROMPT -` waits for it");
  return undefined;
}

/** On Linux: device 3 of the memory devices. */
function isNullDevice(): boolean {
  try {
    const stat = fstatSync(0);
    return process.platform === "linux" && stat.isCharacterDevice() && stat.rdev === 0x1_03;
  } catch {
    return false;
  }
}

function isPipe(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    // No descriptor at all; reading it will say what is wrong.
    return false;
  }
}

/** Bytes stay in the stream for whoever reads it next. */
function firstByte(stdin: NodeJS.ReadStream, isOver: Promise<unknown>): Promise<"bytes" | "ended" | "silent"> {
  const { promise, resolve } = Promise.withResolvers<"bytes" | "ended" | "silent">();
  const settle = (how: "bytes" | "ended" | "silent"): void => {
    stdin.off("readable", onReadable).off("end", onEnd).off("error", onEnd);
    resolve(how);
  };
  const onReadable = (): void => {
    if (stdin.readableLength > 0) settle("bytes");
  };
  // An input that cannot be read is asked again by whoever needs it, and is none here.
  const onEnd = (): void => settle("ended");
  stdin.on("readable", onReadable).on("end", onEnd).on("error", onEnd);
  // A stream that is empty ends only when it is read.
  stdin.read(0);
  isOver.then(
    () => settle("silent"),
    () => settle("silent"),
  );
  return promise;
}

async function readAll({ stdin, signal }: PromptSource): Promise<Buffer> {
  signal.throwIfAborted();
  const leave = (): void => {
    stdin.destroy(toHeddleError(signal.reason));
  };
  signal.addEventListener("abort", leave);
  try {
    return await collect(stdin);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

async function collect(stdin: NodeJS.ReadStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    size += bytes.length;
    if (size > MAX_PROMPT_BYTES) {
      const limit = MAX_PROMPT_BYTES / 1024 / 1024;
      throw new HeddleError(
        "usage.invalid",
        `standard input is over ${limit} MiB; put it in a file and name the file in the prompt`,
      );
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** UTF-8, or UTF-16 that says so with its first two bytes. */
function decode(bytes: Buffer, what: string): string {
  const mark = bytes.toString("hex", 0, 2);
  const encoding = mark === "fffe" ? "utf-16le" : mark === "feff" ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (error) {
    throw new HeddleError(
      "prompt.binary",
      `${what} is not UTF-8 text; attach an image with -i, or name the file in the prompt`,
      { cause: error },
    );
  }
}

function checkedArgument(text: string): string | HeddleError {
  // Bytes of an argument that are not UTF-8 arrive as this character; whoever means it can pipe it in.
  if (text.includes("\u{fffd}")) {
    return new HeddleError("prompt.binary", "the prompt is not UTF-8 text; pipe it in as UTF-8: heddle exec - < FILE");
  }
  try {
    return checkedText(text, "argument");
  } catch (error) {
    return toHeddleError(error);
  }
}

function checkedText(text: string, from: "argument" | "stdin"): string {
  if (text.includes("\u0000")) {
    throw new HeddleError(
      "prompt.binary",
      "the prompt holds NUL bytes; name a binary file in the prompt instead of piping it in",
    );
  }
  if (text.trim() !== "") return text;
  const where = from === "stdin" ? "No prompt provided via stdin: the prompt is empty" : "the prompt is empty";
  throw new HeddleError("prompt.empty", `${where}; say what to do: heddle exec "fix the failing test"`);
}
