/**
 * Finds the lines of a text that match a regular expression of the model, in a thread of its own: a pattern that
 * backtracks without end is killed after two seconds.
 */
import type { Worker } from "node:worker_threads";
import { HeddleError, reasonOf } from "@heddle/protocol";

const MAX_MATCH_MS = 2000;
const MAX_MEMORY_MB = 128;

export interface MatchedLine {
  readonly number: number;
  readonly text: string;
}

// Plain text, so that it runs from source and from a bundle alike, without a second file to find.
const WORKER_SOURCE = `
const { parentPort, workerData } = require("node:worker_threads");
const pattern = new RegExp(workerData.pattern, workerData.flags);
parentPort.on("message", ({ text, maxMatches, maxChars }) => {
  const matches = [];
  const lines = text.split("\\n");
  for (let index = 0; index < lines.length && matches.length < maxMatches; index += 1) {
    if (pattern.test(lines[index])) matches.push({ number: index + 1, text: lines[index].slice(0, maxChars) });
  }
  parentPort.postMessage(matches);
});
`;

export class LineMatcher implements AsyncDisposable {
  readonly #worker: Worker;

  /** Throws `tool.failed` for an invalid pattern. */
  constructor(pattern: string, options: { readonly isCaseInsensitive: boolean }) {
    const flags = options.isCaseInsensitive ? "i" : "";
    try {
      // Compiled only, to report errors; never executed on this thread.
      RegExp(pattern, flags);
    } catch (error) {
      throw new HeddleError("tool.failed", reasonOf(error), { cause: error });
    }
    this.#worker = new (process.getBuiltinModule("node:worker_threads").Worker)(WORKER_SOURCE, {
      eval: true,
      workerData: { pattern, flags },
      resourceLimits: { maxOldGenerationSizeMb: MAX_MEMORY_MB },
      env: {},
      execArgv: [],
    });
  }

  async match(
    text: string,
    options: { readonly maxMatches: number; readonly maxChars: number; readonly signal: AbortSignal },
  ): Promise<readonly MatchedLine[]> {
    options.signal.throwIfAborted();
    const done = Promise.withResolvers<readonly MatchedLine[]>();
    const tooSlow = (): void =>
      done.reject(
        new HeddleError("tool.timeout", `the pattern took more than ${MAX_MATCH_MS} ms on one file; make it simpler`),
      );
    const onAbort = (): void => done.reject(options.signal.reason);
    const timer = setTimeout(tooSlow, MAX_MATCH_MS);
    options.signal.addEventListener("abort", onAbort, { once: true });
    this.#worker.once("message", done.resolve).once("error", done.reject);
    try {
      this.#worker.postMessage({ text, maxMatches: options.maxMatches, maxChars: options.maxChars });
      return await done.promise;
    } finally {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", onAbort);
      this.#worker.off("message", done.resolve).off("error", done.reject);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
