/** The options of `heddle mcp serve`, beside the command that loads it. */
import type { OptionSpec } from "../args.ts";

export const SERVE_OPTIONS: readonly OptionSpec[] = [
  {
    name: "envelope",
    value: "NAME",
    of: "serve",
    help: "Offer the tools of this envelope, in this folder, instead of Heddle's own (heddle envelopes)",
  },
  {
    name: "ask",
    of: "serve",
    help: "Questions wait for a user at another door; absent: policy answers, and what needs a user is refused",
  },
  { name: "tasks", of: "serve", help: "Carry out the tasks of this home too, as heddle watch does" },
  {
    name: "finish",
    of: "serve",
    help: "When the client disconnects, let its turns finish; absent: they are interrupted",
  },
];
