/** Differences that come with a kind of message, in whatever scenario. */
import type { Difference } from "../differences.ts";

export const OF_EVERY_MESSAGE: readonly Difference[] = [
  // Added fields. Clients that do not know them pass over them.
  {
    kind: "field",
    path: /^(params|result)\.seq$/,
    codex: undefined,
    why: "the version of the event in the thread's journal, from which a client can go on after a break",
  },
  { message: /^turn\/started/, path: /^params\.sandboxLevel$/, codex: undefined, why: "what really holds the sandbox" },
  { message: /^turn\/completed/, path: /costUsd$/, codex: undefined, why: "what the turn cost" },
  { path: /error\.code$/, codex: undefined, why: "programs decide by a code, not by words" },
  { path: /error\.data$/, codex: undefined, why: "programs decide by a code, not by words" },
  { path: /item\.error$/, codex: undefined, why: "why it failed, where Codex only says that it did" },
  // The handshake.
  { message: /^answer initialize$/, path: /^result\.codexHome$/, heddle: "{root}/heddle", why: "Heddle's own home" },
  { message: /^answer initialize$/, path: /^result\.heddle$/, codex: undefined, why: "who really answers" },
  { message: /^answer initialize$/, path: /^result\.userAgent$/, why: "it names the system and the program it is" },
  // What Codex says of its own.
  { kind: "missing", message: /^account\/rateLimits\/updated$/, why: "limits of an account that nobody has here" },
  { path: /(thread|data\.\d+)\.path$/, why: "the record is the journal; a thread's export lies in Heddle's own home" },
  {
    message: /^thread\/tokenUsage\/updated$/,
    path: /modelContextWindow$/,
    why: "the model's window as its catalogue has it; Codex tells a part of it",
  },
  {
    path: /readStates?$/,
    why: "which turns a person has read is not kept",
    heddle: null,
  },
  { kind: "missing", message: /^thread\/readState\/changed$/, why: "which turns a person has read is not kept" },
  // Commands.
  {
    path: /\.processId$/,
    heddle: null,
    codex: "{process}",
    why: "the number of a terminal of Codex's; commands here end with their turn",
  },
  {
    path: /\.source$/,
    codex: "unifiedExecStartup",
    heddle: "agent",
    why: "there is one way to run a command, and the agent ran it",
  },
  // What the model server of these tests announces.
  {
    kind: "added",
    message: /^item\/reasoning\/summaryPartAdded$/,
    why: "the model server does not announce parts of a summary; Heddle does it for its clients all the same",
  },
  // Questions.
  {
    message: /^ask item\/commandExecution\/requestApproval$/,
    path: /availableDecisions\.[123]$/,
    why: "every answer that is understood is offered; rules for commands are not proposed",
  },
  {
    message: /^ask item\/commandExecution\/requestApproval$/,
    path: /proposedExecpolicyAmendment$/,
    heddle: null,
    why: "rules for commands are not proposed",
  },
  {
    message: /^ask item\//,
    path: /params\.reason$/,
    heddle: "it is not known to be read-only",
    why: "whoever is asked is told why",
  },
];
