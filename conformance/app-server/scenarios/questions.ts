/** What clients ask before and beside turns, and what they get wrong. */
import { initialize, text, threadStarted, type Scenario } from "../scenario.ts";

const NOBODY = "00000000-0000-0000-0000-000000000000";
const NO_THREAD = { threadId: NOBODY };

export const QUESTIONS: readonly Scenario[] = [
  {
    id: "initialize",
    about: "the handshake, twice, and before it",
    moves: [
      { call: "thread/list", params: {} },
      { call: "initialize", params: {} },
      initialize(),
      { say: { method: "initialized" } },
      { call: "initialize", params: { clientInfo: { name: "x", version: "1" } } },
    ],
  },
  {
    id: "initialize-names",
    about: "a client whose name no header can hold, and one of two words",
    moves: [
      { call: "initialize", params: { clientInfo: { name: "a\r\nb", version: "1" } } },
      { call: "initialize", params: { clientInfo: { name: "Some Editor", version: "1" } } },
    ],
  },
  {
    id: "unreadable",
    about: "lines that are no message, and messages nobody asked for",
    moves: [
      initialize(),
      { say: "this is not json" },
      { say: { id: 900, foo: 1 } },
      { say: { id: "resp-unknown", result: {} } },
      { say: { method: "no/such/notification", params: {} } },
      { say: { jsonrpc: "2.0", id: "abc", method: "thread/loaded/list", params: {} } },
      { call: "thread/loaded/list", params: {} },
    ],
  },
  {
    id: "wrong-params",
    about: "methods and params that are wrong",
    moves: [
      initialize(),
      { call: "no/such", params: {} },
      { call: "no/such" },
      { call: "turn/start", params: { threadId: 5 } },
      { call: "turn/start", params: { threadId: NOBODY } },
      { call: "turn/start", params: { threadId: NOBODY, input: [{ type: "smell", text: "x" }] } },
      { call: "thread/start", params: { cwd: "{ws}", approvalPolicy: "on-failure" } },
      { call: "thread/start", params: { cwd: "{ws}", sandbox: "workspaceWrite" } },
      { call: "thread/start", params: { cwd: 5 } },
      { call: "thread/name/set", params: { threadId: NOBODY } },
      { call: "thread/list", params: { limit: "ten" } },
      { call: "thread/list", params: { cursor: "nonsense" } },
      { call: "thread/search", params: { searchTerm: "x" } },
      { call: "thread/start", params: { cwd: "{ws}", historyMode: "paginated" } },
    ],
  },
  {
    id: "unknown-thread",
    about: "a thread that is not there, by every method, and ids that are none",
    moves: [
      initialize(),
      { call: "turn/start", params: { threadId: "nope", input: [] } },
      { call: "turn/start", params: { ...NO_THREAD, input: text("x") } },
      { call: "turn/steer", params: { ...NO_THREAD, expectedTurnId: "x", input: text("x") } },
      { call: "turn/interrupt", params: { ...NO_THREAD, turnId: "x" } },
      { call: "thread/read", params: NO_THREAD },
      { call: "thread/read", params: { threadId: "nope" } },
      { call: "thread/resume", params: NO_THREAD },
      { call: "thread/resume", params: { threadId: "nope" } },
      { call: "thread/fork", params: NO_THREAD },
      { call: "thread/archive", params: NO_THREAD },
      { call: "thread/unarchive", params: NO_THREAD },
      { call: "thread/delete", params: NO_THREAD },
      { call: "thread/name/set", params: { ...NO_THREAD, name: "x" } },
      { call: "thread/compact/start", params: NO_THREAD },
      { call: "thread/turns/list", params: NO_THREAD },
      { call: "thread/items/list", params: NO_THREAD },
      { call: "thread/unsubscribe", params: NO_THREAD },
    ],
  },
  {
    id: "fresh-thread",
    about: "a thread without a turn is asked for everything",
    moves: [
      ...threadStarted(),
      { call: "thread/read", params: { threadId: "{thread}" } },
      { call: "thread/list", params: {} },
      { call: "turn/interrupt", params: { threadId: "{thread}", turnId: "x" } },
      { call: "turn/steer", params: { threadId: "{thread}", expectedTurnId: "x", input: text("x") } },
    ],
  },
  {
    id: "no-settings",
    about: "a thread that says nothing about its sandbox, in a folder nobody trusts",
    moves: [initialize(), { call: "thread/start", params: { cwd: "{ws}" } }, { until: "thread/started" }],
  },
  {
    id: "empty-input",
    about: "a turn without input",
    moves: [
      ...threadStarted(),
      { call: "turn/start", params: { threadId: "{thread}", input: [] } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "surroundings",
    about: "what clients ask before their first turn",
    moves: [
      initialize({ isExperimental: true }),
      { call: "account/read", params: {} },
      { call: "getAuthStatus", params: {} },
      { call: "account/rateLimits/read" },
      { call: "permissionProfile/list", params: {} },
      { call: "skills/list", params: { cwds: ["{ws}"] } },
      { call: "mcpServerStatus/list", params: {} },
      { call: "hooks/list", params: {} },
      { call: "collaborationMode/list", params: {} },
      { call: "modelProvider/capabilities/read", params: {} },
      { call: "configRequirements/read" },
    ],
  },
  { id: "models", about: "the list of models", moves: [initialize(), { call: "model/list", params: {} }] },
  { id: "config", about: "the settings in force", moves: [initialize(), { call: "config/read", params: {} }] },
];
