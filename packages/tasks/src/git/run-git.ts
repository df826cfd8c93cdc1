/** Runs one git process with exactly the given environment; its output is bounded in size and time. */
import { spawn } from "node:child_process";
import { HeddleError, reasonOf } from "@heddle/protocol";

const GIT_MS = 120_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_CHARS = 64 * 1024;
const SHOWN_CHARS = 500;

export interface GitRun {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly args: readonly string[];
  readonly input?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
  /** Changes what is the owner's: once begun, neither the signal nor one of the terminal ends it in the middle. */
  readonly isWhole?: true;
}

export interface GitEnd {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Throws `tool.failed` when git cannot be run, `limit.reached` when it prints too much or takes too long. */
export async function runGit({ cwd, env, args, input, signal, isWhole }: GitRun): Promise<GitEnd> {
  signal.throwIfAborted();
  const limit = AbortSignal.timeout(GIT_MS);
  const child = spawn("git", args, {
    cwd,
    env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: isWhole === true,
  });
  const stop = isWhole === true ? limit : AbortSignal.any([signal, limit]);
  // Node sends the signal for a child that could not be started (no descriptors) to a number that nobody has set.
  const kill = (): void => void (child.pid !== undefined && child.kill("SIGKILL"));
  stop.addEventListener("abort", kill, { once: true });
  const chunks: Buffer[] = [];
  let size = 0;
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
    else kill();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < MAX_ERROR_CHARS) stderr += text;
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? -1));
  });
  try {
    // Git may end before it has read its input; its exit code tells.
    const [exitCode] = await Promise.all([ended, feed(child.stdin, input).catch(() => undefined)]);
    stop.throwIfAborted();
    if (size > MAX_OUTPUT_BYTES) {
      throw new HeddleError("limit.reached", `git ${verbOf(args)} printed more than ${MAX_OUTPUT_BYTES} bytes`);
    }
    return { exitCode, stdout: Buffer.concat(chunks), stderr };
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) {
      throw new HeddleError("limit.reached", `git ${verbOf(args)} had not ended after ${GIT_MS} ms`, { cause: error });
    }
    if (error instanceof HeddleError) throw error;
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const why = isMissing ? "git is not installed" : reasonOf(error);
    throw new HeddleError("tool.failed", `git cannot be run: ${why}`, { cause: error });
  } finally {
    stop.removeEventListener("abort", kill);
  }
}

async function feed(stdin: NodeJS.WritableStream, input: GitRun["input"]): Promise<void> {
  const failed = new Promise<never>((_resolve, reject) => stdin.once("error", reject));
  // A stream that breaks while nothing is written is not a failure of its own.
  failed.catch(() => undefined);
  const write = (chunk: string | Uint8Array): Promise<void> | undefined =>
    stdin.write(chunk) ? undefined : new Promise((resolve) => stdin.once("drain", resolve));
  if (input !== undefined) {
    if (typeof input === "string" || input instanceof Uint8Array) await Promise.race([write(input), failed]);
    else for await (const chunk of input) await Promise.race([write(chunk), failed]);
  }
  stdin.end();
}

/** The first argument that is not an option of git itself. */
function verbOf(args: readonly string[]): string {
  return args.find((arg, index) => !arg.startsWith("-") && args[index - 1] !== "-c") ?? "";
}

export function outputOf({ stdout, stderr, exitCode }: GitEnd): string {
  return (stderr.trim() || stdout.toString("utf8").trim()).slice(-SHOWN_CHARS) || `exit ${exitCode}`;
}
