/**
 * Regular expressions of checks run in a thread of their own, so that one that backtracks blocks nothing and is stopped at
 * a limit. Then it is an error, never an answer.
 */
import { Worker } from "node:worker_threads";
import { HeddleError, reasonOf } from "@heddle/protocol";

const MAX_MATCH_MS = 2_000;
const MAX_MEMORY_MB = 256;

export interface Question {
  readonly source: string;
  readonly flags: string;
  readonly text: string;
}

// As text, so that it runs from source and from a bundle without a second file.
const WORKER_SOURCE = `
const { parentPort, workerData } = require("node:worker_threads");
parentPort.postMessage(workerData.map(({ source, flags, text }) => new RegExp(source, flags).test(text)));
`;

/** Whether each matches, in order. `tool.timeout`: all together take too long; `usage.invalid`: not a pattern. */
export async function testPatterns(questions: readonly Question[], signal: AbortSignal): Promise<readonly boolean[]> {
  if (questions.length === 0) return [];
  for (const { source, flags } of questions) compile(source, flags);
  signal.throwIfAborted();
  const done = Promise.withResolvers<readonly boolean[]>();
  const worker = new Worker(WORKER_SOURCE, {
    eval: true,
    workerData: questions,
    resourceLimits: { maxOldGenerationSizeMb: MAX_MEMORY_MB },
    env: {},
    execArgv: [],
  });
  const onAbort = (): void => done.reject(signal.reason);
  const timer = setTimeout(() => {
    done.reject(new HeddleError("tool.timeout", `the pattern took more than ${MAX_MATCH_MS} ms; make it simpler`));
  }, MAX_MATCH_MS);
  signal.addEventListener("abort", onAbort, { once: true });
  worker.once("message", done.resolve).once("error", done.reject);
  try {
    return await done.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    await worker.terminate();
  }
}

export async function testPattern(question: Question, signal: AbortSignal): Promise<boolean> {
  const [answer] = await testPatterns([question], signal);
  return answer === true;
}

/** Only compiled here, which is quick; it is never executed on this thread. */
function compile(source: string, flags: string): void {
  if (/[gy]/.test(flags)) {
    throw new HeddleError("usage.invalid", `the flags ${JSON.stringify(flags)} have g or y, which have no effect here`);
  }
  try {
    RegExp(source, flags);
  } catch (cause) {
    const why = reasonOf(cause);
    throw new HeddleError("usage.invalid", `${JSON.stringify(source)} is not a regular expression: ${why}`, { cause });
  }
}
