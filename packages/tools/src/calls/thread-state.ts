/** What outlives a call within one thread: its open commands and what they run with. */
import type { OutputFilter } from "../commands/output.ts";
import { ProcessTable } from "../commands/process-table.ts";
import type { ThreadState } from "./tool.ts";

export interface ThreadStateOptions {
  /** Absolute; made on demand. Whole outputs of commands are kept there, each under its SHA-256. */
  readonly blobFolder: string;
  /** The complete environment of commands; `useEnvironment` exchanges it. */
  readonly environment: Readonly<Record<string, string>>;
  /** A filter for the output of each command, such as one that removes secrets. */
  readonly newFilter?: () => OutputFilter;
}

export function openThreadState(options: ThreadStateOptions): ThreadState {
  const processes = new ProcessTable(options.blobFolder, options.newFilter);
  let { environment } = options;
  return {
    processes,
    blobFolder: options.blobFolder,
    get environment() {
      return environment;
    },
    useEnvironment(next) {
      environment = next;
    },
    [Symbol.asyncDispose]: () => processes[Symbol.asyncDispose](),
  };
}

/** No program may wait for a pager or a password. */
export const QUIET = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0", NO_COLOR: "1" };
