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
    in: /^plugins-install$/,
    message: /^answer (skills|hooks)\/list$/,
    path: /(path|sourcePath|currentHash|skills\.[1-9])$/,
    why: "installed plugins are beside Heddle's home; the skills that Codex brings along are its own",
  },
  {
    in: /^plugins-install-refused$/,
    message: /^answer plugin\/uninstall$/,
    path: /^error\.message$/,
    why: "there are no plugins elsewhere that an id could mean",
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
  {
    in: /^queue-/,
    message: /^answer thread\/queue\/(add|update|list)$/,
    path: /\.id$/,
    codex: "{id}",
    why: "what waits has the id of the turn it will be",
  },
  {
    in: /^queue-interrupted/,
    kind: "added",
    message: /^item\/completed commandExecution$/,
    why: "an item that began has an end; Codex leaves it open",
  },
  {
    in: /^queue-interrupted/,
    kind: "moved",
    message: /^thread\/tokenUsage\/updated$/,
    why: "what a request used is told with the end of its calls, also when they were stopped",
  },
  {
    in: /^running-turn-model(-of-thread)?$/,
    kind: "missing",
    message: /^warning$/,
    why: "changes of a running turn are no unfinished feature here",
  },
  {
    in: /^running-turn-settings$/,
    message: /^answer turn\/settings\/update$/,
    path: /^(error|result|error\.message)$/,
    why: "a refusal names what changes the next turn, or the one reviewer there is; Codex lists the fields it knows",
  },
  {
    in: /^steer-compact$/,
    message: /^answer turn\/steer$/,
    path: /^(error|result)$/,
    why: "input while a thread is compacted is kept and told to the model after it, in the same turn; Codex refuses it",
  },
];
