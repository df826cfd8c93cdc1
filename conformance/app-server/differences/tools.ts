/** Differences around questions of agents, tools of clients, goals and keys. */
import type { Difference } from "../differences.ts";

export const AROUND_TOOLS: readonly Difference[] = [
  {
    in: /^mcp-brought-kept$/,
    message: /^(item\/(started|completed) mcpToolCall|mcpServer\/startupStatus\/updated)$/,
    why: "a thread keeps the servers that were brought to it; Codex forgets them with its process",
  },
  {
    in: /^mcp-brought-(required|wrong)$/,
    message: /^answer thread\/start$/,
    path: /^error\.message$/,
    why: "the message says what the server wrote, or what the table lacks",
  },
  {
    in: /^(ask-user|plan-(alone|among-words|twice))/,
    message: /^thread\/settings\/updated$/,
    path: /developer_instructions$/,
    codex: "{words}",
    heddle: null,
    why: "what agents are told while they plan is Heddle's own affair, and not shown",
  },
  {
    in: /^(ask-user|plan-(alone|among-words|twice))/,
    kind: "moved",
    message: /^thread\/settings\/updated$/,
    why: "the answer to a call comes before what the call sets going; Codex sends them in any order",
  },
  {
    in: /^ask-user-interrupted$/,
    message: /^(serverRequest\/resolved|thread\/status\/changed active)$/,
    why: "a question is taken back before the turn ends, and the thread no longer waits; Codex does it afterwards",
  },
  {
    in: /^ask-user-interrupted$/,
    kind: "moved",
    message: /^thread\/tokenUsage\/updated$/,
    why: "what a request used is told with the end of its calls, also when they were stopped",
  },
  {
    in: /^ask-user-never$/,
    why: "who wants never to be asked is not asked; the agent has no such tool then",
  },
  {
    in: /^tool-wrong$/,
    kind: "added",
    message: /^warning$/,
    why: "a tool with the name of one of Heddle's own cannot be offered, and the client is told so",
  },
  {
    in: /^tool-interrupted$/,
    kind: "moved",
    message: /^(item\/completed dynamicToolCall|answer turn\/interrupt)$/,
    why: "the answer to a call comes before what the call sets going",
  },
  {
    in: /^tool-interrupted$/,
    message: /^item\/completed dynamicToolCall$/,
    path: /item\.(outcome|durationMs)$/,
    why: "which of Heddle's ends it was stands beside the four of Codex",
  },
  {
    in: /^goal-(begins|restarted)$/,
    message: /^thread\/goal\/updated$/,
    why: "what work for a goal has used is told when its turn has ended; Codex tells it with every answer",
  },
  {
    in: /^goal-(begins|restarted)$/,
    kind: "added",
    message: /^item\/(started|completed) mcpToolCall$/,
    why: "a call of one of Heddle's own tools is an item, as every call is",
  },
  {
    in: /^goal-restarted$/,
    message: /^(thread\/tokenUsage\/updated|answer thread\/goal\/get)$/,
    path: /(tokenUsage\.total\.\w+|goal\.tokensUsed|params\.turnId)$/,
    why: "what a turn has used counts, also when its program was killed",
  },
  {
    in: /^plan-twice$/,
    message: /^item\/(started plan|completed plan|plan\/delta)$/,
    why: "each of several plans is an item whose deltas are its text; Codex has one, with the deltas of all and the text of the last",
  },
  {
    in: /^shell-command-active$/,
    message: /commandExecution$/,
    path: /item\.command$/,
    why: "no command runs in a login shell unless it asks for one",
  },
  {
    in: /^key-missing$/,
    path: /error\.(message|codexErrorInfo)$/,
    why: "the words say what to do, and a missing key is called by its name",
  },
];
