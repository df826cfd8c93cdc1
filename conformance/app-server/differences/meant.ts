/** Differences of single scenarios that are meant. */
import type { Difference } from "../differences.ts";

export const MEANT: readonly Difference[] = [
  {
    in: /^interrupt$/,
    kind: "added",
    message: /^answer turn\/interrupt$/,
    heddle: { answerTo: "turn/interrupt", error: { code: -32600, message: "no active turn to interrupt" }, id: 5 },
    why: "every call is answered; Codex never answers a second interrupt",
  },
  {
    in: /^(interrupt|approve-interrupted|approve-change-cancel)$/,
    kind: "added",
    message: /^item\/completed (commandExecution|fileChange)$/,
    why: "an item that began has an end; Codex leaves it open",
  },
  {
    in: /^(interrupt|approve-interrupted)$/,
    kind: "moved",
    message: /^thread\/tokenUsage\/updated$/,
    why: "what a request used is told with the end of its calls, also when they were stopped",
  },
  {
    in: /^approve-interrupted$/,
    message: /^(serverRequest\/resolved|thread\/status\/changed active)$/,
    why: "a question is taken back before the turn ends, and the thread no longer waits; Codex does it afterwards",
  },
  {
    in: /^approve-command-(cancel|decline|unknown)$/,
    kind: "moved",
    message: /^item\/completed commandExecution$/,
    why: "the thread no longer waits once it is answered, so that is told first",
  },
  {
    in: /^approve-change-/,
    kind: "moved",
    message: /^item\/started fileChange$/,
    why: "a thread waits from the moment of the question; the item is told with it, before the question",
  },
  {
    in: /^approve-command-unknown$/,
    message: /^item\/completed commandExecution$/,
    path: /item\.status$/,
    codex: "failed",
    heddle: "declined",
    why: "an answer that nobody understands is a no",
  },
  {
    in: /^empty-input$/,
    why: "a turn without input is a mistake of the caller; Codex pays for an answer to nothing",
  },
  {
    in: /^thread-settings$/,
    kind: "added",
    message: /^warning$/,
    why: "a client is told which of its wishes have no effect",
  },
  {
    in: /^thread-ephemeral$/,
    message: /^answer thread\/read$/,
    why: "a thread that is not kept can be read with its turns as long as it is there",
  },
  {
    in: /^thread-list$/,
    path: /(itemId|items?\.(0\.)?id)$/,
    why: "the model server names items of two threads alike; items here have names of their own",
  },
  {
    message: /^answer thread\/(list|unarchive)$/,
    path: /(environments|canAcceptDirectInput)$/,
    codex: null,
    why: "known of every thread, not only of those in memory",
  },
  {
    in: /^thread-archive$/,
    kind: "moved",
    message: /^thread\/status\/changed notLoaded$/,
    why: "the answer to a call comes before what the call sets going",
  },
  {
    in: /^unknown-thread$/,
    message: /^answer thread\/items\/list$/,
    path: /^error\.(code|message)$/,
    why: "a thread that is not there is not there; Codex says that it cannot list items",
  },
  {
    in: /^models$/,
    message: /^answer model\/list$/,
    path: /^result\.data\./,
    why: "which models there are, and what they are called, is the catalogue's business; the shape is held by the schema",
  },
  {
    in: /^config$/,
    message: /^answer config\/read$/,
    path: /^result\./,
    why: "only settings that mean something here are told; the shape is held by the schema",
  },
  {
    in: /^surroundings$/,
    message: /^answer skills\/list$/,
    path: /skills\.\d+$/,
    heddle: undefined,
    why: "the skills that Codex brings along are its own",
  },
  {
    in: /^model-(refuses|fails|recovers)$/,
    path: /error\.(message|additionalDetails)$/,
    why: "the words say what happened here; how often something is tried again is told by `willRetry`",
  },
  {
    in: /^model-refuses$/,
    path: /error\.codexErrorInfo$/,
    codex: "other",
    heddle: "badRequest",
    why: "a refused request is called by its name",
  },
];
