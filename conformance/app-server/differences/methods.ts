/** Differences of methods about the machine, the queue, attachments and plugins that are meant. */
import type { Difference } from "../differences.ts";

export const OF_METHODS: readonly Difference[] = [
  {
    in: /^features-listed$/,
    message: /^answer experimentalFeature\/list$/,
    path: /^result\.data\./,
    why: "what Heddle has of what clients look for by name is on, what it has not is off; Codex lists flags of its own",
  },
  {
    in: /^usage-read$/,
    message: /^answer account\/usage\/read$/,
    path: /^(error|result)$/,
    why: "every home has a ledger; Codex knows only what its maker's cloud counts for an account",
  },
  {
    in: /^process-refused$/,
    kind: "added",
    message: /^process\/exited$/,
    why: "a program is looked for inside the sandbox: one that is missing ends with 127, as at a shell",
  },
  {
    in: /^process-refused$/,
    message: /^answer process\/spawn$/,
    path: /^(error|result)$/,
    why: "a program is looked for inside the sandbox: one that is missing ends with 127, as at a shell",
  },
];
