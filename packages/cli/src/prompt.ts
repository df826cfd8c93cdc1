/**
 * The prompt: an argument, or standard input when there is none or it is `-`. With an argument standard input is not
 * touched, so that a caller who leaves a pipe open never hangs a run.
 */
import { HeddleError, toHeddleError } from "@heddle/protocol";

/** Far more than any model reads; a stream without end must not fill the memory. */
const MAX_PROMPT_BYTES = 8 * 1024 * 1024;

export interface PromptSource {
  readonly positionals: readonly string[];
  readonly stdin: NodeJS.ReadStream;
  /** Ends the wait for standard input. */
  readonly signal: AbortSignal;
  /** Tells a person at a terminal what is being waited for. */
  readonly notify: (text: string) => void;
}

export async function readPrompt({ positionals, stdin, signal, notify }: PromptSource): Promise<string> {
  const [first, second, ...more] = positionals;
  if (more.length > 0 || (second !== undefined && second !== "-")) {
    throw new HeddleError(
      "usage.invalid",
      `one prompt is expected; put it in quotes: heddle exec "${positionals.join(" ")}"`,
    );
  }
  if (first === undefined || first === "-") {
    if (first === undefined && stdin.isTTY) {
      throw new HeddleError("prompt.empty", `give a prompt: heddle exec "what to do", or pipe it in`);
    }
    if (first === undefined) notify("reading the prompt from standard input");
    return checkedText(decode(await readAll(stdin, signal), "the prompt on standard input"));
  }
  // Bytes of an argument that are not UTF-8 arrive as this character; whoever means it can pipe it in.
  if (first.includes("\u{fffd}")) {
    throw new HeddleError("prompt.binary", "the prompt is not UTF-8 text; pipe it in as UTF-8: heddle exec - < FILE");
  }
  const prompt = checkedText(first);
  if (second === undefined) return prompt;
  return `${prompt}\n\n<stdin>\n${decode(await readAll(stdin, signal), "standard input")}\n</stdin>`;
}

async function readAll(stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted();
  signal.addEventListener("abort", () => stdin.destroy(toHeddleError(signal.reason)), { once: true });
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

function decode(bytes: Buffer, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new HeddleError(
      "prompt.binary",
      `${what} is not UTF-8 text; attach an image with -i, or name the file in the prompt`,
      {
        cause: error,
      },
    );
  }
}

function checkedText(text: string): string {
  if (text.includes("\u0000")) {
    throw new HeddleError(
      "prompt.binary",
      "the prompt holds NUL bytes; name a binary file in the prompt instead of piping it in",
    );
  }
  if (text.trim() === "")
    throw new HeddleError("prompt.empty", `the prompt is empty; say what to do: heddle exec "fix the failing test"`);
  return text;
}
