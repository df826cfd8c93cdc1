/**
 * The prompt, as `codex exec` reads it: an argument, with piped input appended in a `<stdin>` block; or standard input alone.
 * Reading begins with the process, beside everything else. One thing is different: with an argument, a stream that nobody
 * writes holds up no run (`stdin/read-beside.ts`), and that is said in the turn.
 */
import { fstatSync } from "node:fs";
import { HeddleError, toHeddleError, type NoticeText } from "@heddle/protocol";
import { isSecondPrompt } from "./exec/request.ts";
import { gather } from "./stdin/gather.ts";
import { readBeside } from "./stdin/read-beside.ts";

export interface PromptSource {
  /** What stands in the place of the prompt, and a `-` after it. */
  readonly args: readonly string[];
  readonly stdin: NodeJS.ReadStream;
  /** Ends the wait for standard input. */
  readonly signal: AbortSignal;
  /** Says on stderr what is being waited for. */
  readonly notify: (text: string) => void;
}

export interface Prompt {
  readonly text: string;
  /** What the record of the turn must say about it. */
  readonly notices: readonly NoticeText[];
}

/** What standard input brings to a prompt; nothing is thrown before it is asked for. */
export interface PromptReading {
  prompt(): Promise<Prompt>;
}

/** Begins to listen at once; the waiting is done by the time the rest of a run is prepared. */
export function beginPrompt(source: PromptSource): PromptReading {
  const [first, second] = source.args;
  if (isSecondPrompt(source.args)) {
    const quoted = `heddle exec "${source.args.join(" ")}"`;
    return refused(new HeddleError("usage.invalid", `one prompt is expected; put it in quotes: ${quoted}`));
  }
  const argument = first === undefined || first === "-" ? undefined : checkedArgument(first);
  if (argument instanceof HeddleError) return refused(argument);
  // Making a stream of standard input takes longer than seeing that nothing can come from it.
  if (argument !== undefined && second === undefined && isNullDevice()) return alone(argument);
  const { stdin, signal, notify } = source;
  if (first === undefined && stdin.isTTY) {
    return refused(new HeddleError("prompt.empty", `give a prompt: heddle exec "what to do", or pipe it in`));
  }
  if (argument === undefined) {
    if (first === undefined) notify("Reading prompt from stdin...");
    return settling(async () => {
      const text = decode(await gather(stdin, signal).whole, "the prompt on standard input");
      return { text: checkedText(text, "stdin"), notices: [] };
    });
  }
  if (second !== "-" && stdin.isTTY) return alone(argument);
  return settling(async (isAsked) => {
    const { bytes, abandoned } =
      second === "-" || !isPipe()
        ? { bytes: await gather(stdin, signal).whole }
        : await readBeside({ stdin, signal, notify, isAsked, writers });
    const text = withInput(argument, decode(bytes, "standard input"));
    return abandoned === undefined ? { text, notices: [] } : { text, notices: [notice(abandoned)] };
  });
}

function alone(text: string): PromptReading {
  return { prompt: async () => ({ text, notices: [] }) };
}

function notice(message: string): NoticeText {
  return { level: "warning", code: "input.abandoned", message };
}

function refused(error: HeddleError): PromptReading {
  return { prompt: () => Promise.reject(error) };
}

/** Starts now, and keeps a failure until it is asked for. */
function settling(read: (isAsked: Promise<void>) => Promise<Prompt>): PromptReading {
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
  return fstatSync(0).isFIFO() || isSocket();
}

function isSocket(): boolean {
  return fstatSync(0).isSocket();
}

/** No shell connects commands by sockets; programs do, and keep them. What pipes need is loaded for silent ones only. */
async function writers(): ReturnType<Parameters<typeof readBeside>[0]["writers"]> {
  if (isSocket()) return { kind: "socket" };
  const { pipeWriters } = await import("./stdin/pipe-writers.ts");
  return await pipeWriters(0);
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
  // Bytes of an argument that are not UTF-8 arrive as this character; to mean it literally, pipe it in.
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
