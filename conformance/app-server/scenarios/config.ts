/** The configuration as clients read and write it, and what it comes to: keys, logins, the environment of commands. */
import { command, MOCK_CONFIG, MOCK_PROVIDER, say } from "../../exec-case.ts";
import { initialize, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const read: Move = { call: "config/read", params: { includeLayers: true } };

function write(keyPath: string, value: unknown, more: Readonly<Record<string, unknown>> = {}): Move {
  return { call: "config/value/write", params: { keyPath, value, mergeStrategy: "replace", ...more } };
}

const WANTS_KEY = `model = "gpt-5.5"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = true
`;
const askAccount: readonly Move[] = [
  initialize(),
  { call: "account/read", params: {} },
  { call: "getAuthStatus", params: { includeToken: false } },
];

/** Each name with its value, or that there is none. */
const SHOW = command(`for n in JAVA_HOME ADDED; do printf '%s=%s\\n' $n "$(printenv $n || echo -)"; done; sleep 0.3`);
const SET = { shell_environment_policy: { set: { ADDED: "by client", JAVA_HOME: "/opt/java" } } };

const LEGACY = {
  name: "lookup",
  description: "Looks a ticket up",
  inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
};
const CALL = "item/tool/call";

export const CONFIG: readonly Scenario[] = [
  {
    id: "config-write",
    about: "values are written where only Codex's config.toml exists, and read again",
    moves: [
      initialize(),
      write("model", "gpt-5.6-sol"),
      write("features.no_such_feature", true),
      write("tui.notifications", true),
      write("tui", { notifications: false }, { mergeStrategy: "upsert" }),
      read,
      write("model", null),
      read,
    ],
  },
  {
    id: "config-write-pipelined",
    about: "a read that is sent with writes before it sees them",
    moves: [
      initialize(),
      { ...write("model_reasoning_effort", "high"), isLeft: true },
      {
        call: "config/batchWrite",
        params: {
          edits: [
            { keyPath: "model", value: "gpt-5.6-sol", mergeStrategy: "replace" },
            { keyPath: "sandbox_workspace_write", value: { network_access: true }, mergeStrategy: "upsert" },
          ],
        },
        isLeft: true,
      },
      read,
    ],
  },
  {
    id: "config-write-wrong",
    about: "values that cannot be written",
    moves: [
      initialize(),
      write("model", 5),
      write("no_such_key", 5),
      write("model_providers.mock.no_such_key", 5),
      write("sandbox_mode", "open"),
      write("", "x"),
      write("model", "x", { expectedVersion: "sha256:1" }),
      write("model", "x", { filePath: "{root}/other.toml" }),
      write("model", "gpt-5.6-sol", { filePath: "{home}/config.toml" }),
      read,
    ],
  },
  {
    id: "config-write-no-key",
    about: "paths that name no key, and values that would break the file",
    moves: [
      initialize(),
      write(" ", 1),
      write("tui..theme", "x"),
      write(".model", "x"),
      write("model.", "x"),
      write('""', "x"),
      write('"model', "x"),
      write('"model\\', "x"),
      write('mo"del"', "x"),
      write("tui", 7),
      write("features", ["goals"]),
      write("tui", { theme: null }),
      write('no_such_table."a.b".c', 1),
      read,
    ],
  },
  {
    id: "config-profile-table",
    about: "a profile as a table of config.toml, chosen there",
    config: `profile = "fast"\n${MOCK_CONFIG}[profiles.fast]\nmodel = "gpt-5.6-sol"\n`,
    moves: [initialize(), read],
  },
  {
    id: "config-layers",
    about: "what every layer says, tables of Codex among it",
    config: `${MOCK_CONFIG}[tui]\nnotifications = true\n[features]\ngoals = true\n[history]\npersistence = "none"\n`,
    moves: [initialize(), read],
  },
  {
    id: "config-unknown",
    about: "keys that nobody knows, in the file and of a thread",
    config: `no_such_key = 1\n${MOCK_CONFIG}`,
    script: [say("ok")],
    moves: [...threadStarted({ config: { no_such_key: 1, "tui.notifications": true } }), ...turn("go")],
  },
  {
    id: "account-key-wanted",
    about: "the provider wants the key of OpenAI, and there is none",
    config: WANTS_KEY,
    moves: askAccount,
  },
  {
    id: "account-key-stored",
    about: "the provider wants the key of OpenAI, which Codex has stored",
    config: WANTS_KEY,
    files: { "codex/auth.json": '{"OPENAI_API_KEY":"stored-key"}' },
    script: [say("ok")],
    moves: [...askAccount, ...threadStarted().slice(1), ...turn("go")],
  },
  {
    id: "model-unnamed",
    about: "a provider of the user's own, and no model named",
    config: `model_provider = "mock"\n${MOCK_PROVIDER}`,
    script: [say("ok")],
    moves: [...threadStarted(), ...turn("go")],
  },
  {
    id: "environment-of-thread",
    about: "what a thread sets for its commands",
    script: [SHOW, say("ok"), SHOW, say("ok")],
    moves: [...threadStarted({ config: SET }), ...turn("go"), ...turn("again")],
  },
  {
    id: "environment-resumed",
    about: "what a thread sets for its commands, after the program was started again",
    script: [SHOW, say("ok"), SHOW, say("ok")],
    moves: [
      ...threadStarted({ config: SET }),
      ...turn("go"),
      { restart: "b" },
      initialize({ client: "b" }),
      { call: "thread/resume", params: { threadId: "{thread}", excludeTurns: true }, client: "b" },
      ...turn("again").map((move) => ({ ...move, client: "b" })),
    ],
  },
  {
    id: "tool-legacy",
    about: "a tool of the client in the older form, without its type",
    script: [{ calls: [{ tool: "lookup", args: { id: "7" } }] }, say("ok")],
    moves: [
      ...threadStarted({ dynamicTools: [LEGACY] }, true),
      ...turn("Look it up", CALL),
      { reply: { contentItems: [{ type: "inputText", text: "open" }], success: true }, to: CALL },
      { until: "turn/completed" },
    ],
  },
  {
    id: "tool-legacy-wrong",
    about: "tools in the older form that cannot be",
    moves: [
      initialize({ isExperimental: true }),
      ...[
        [LEGACY, { ...LEGACY, type: "function", name: "other" }],
        [{ ...LEGACY, type: "function", namespace: "desk" }],
        [{ description: "x", inputSchema: {} }],
        [{ ...LEGACY, deferLoading: true }],
        [{ ...LEGACY, namespace: "mcp" }],
        [
          { ...LEGACY, namespace: "desk" },
          { ...LEGACY, namespace: "desk" },
        ],
      ].map((dynamicTools): Move => ({ call: "thread/start", params: { cwd: "{ws}", dynamicTools } })),
    ],
  },
];
