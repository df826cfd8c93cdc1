/** What the machine lends to clients beside threads: features, usage, searches for files, processes. */
import { MOCK_CONFIG, say } from "../../exec-case.ts";
import { initialize, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const KNOWN = initialize({ isExperimental: true });
const NOBODY = "00000000-0000-0000-0000-000000000000";
const SEARCH = "the-search-of-a-window";

const enable = (enablement: unknown): Move => ({
  call: "experimentalFeature/enablement/set",
  params: enablement === undefined ? {} : { enablement },
});

const search = (method: "Start" | "Update" | "Stop", params: object): Move => ({
  call: `fuzzyFileSearch/session${method}`,
  params: { sessionId: SEARCH, ...params },
});

const SEARCHED: Move = { until: "fuzzyFileSearch/sessionCompleted" };

const spawn = (processHandle: string, command: readonly string[], more: object = {}): Move => ({
  call: "process/spawn",
  params: { processHandle, command, cwd: "{ws}", ...more },
});

const EXITED: Move = { until: "process/exited" };

const stdin = (processHandle: string, params: object): Move => ({
  call: "process/writeStdin",
  params: { processHandle, ...params },
});

const shell = (script: string): readonly string[] => ["sh", "-c", script];
/** Which variables are there, and what those of the policy hold. */
const SHOW = shell(
  `echo ${["LANG", "TERM", "USER", "MOCK_KEY"].map((name) => `${name}=\${${name}+set}`).join(" ")} $FROM_POLICY $OTHER`,
);
const base64 = (words: string): string => Buffer.from(words).toString("base64");

export const HOST: readonly Scenario[] = [
  {
    id: "features-switched",
    about: "features that are not switched while the server runs",
    moves: [
      KNOWN,
      enable({}),
      enable({ goals: false, hooks: false, shell_tool: false, nope: true }),
      enable(undefined),
    ],
  },
  {
    id: "features-listed",
    about: "features are listed page by page, and what cannot be listed is refused",
    moves: [
      KNOWN,
      { call: "experimentalFeature/list", params: { limit: 2 } },
      { call: "experimentalFeature/list", params: { cursor: "nonsense" } },
      { call: "experimentalFeature/list", params: { threadId: NOBODY } },
    ],
  },
  {
    id: "usage-read",
    about: "the usage of the account and of a thread",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "account/usage/read", params: null },
      { call: "account/usage/read", params: { threadId: "{thread}" } },
      { call: "account/usage/read", params: { threadId: "x" } },
    ],
  },
  {
    id: "search-session",
    about: "files are searched while a user types",
    files: { "alphabet.txt": "1", "beta/gamma.ts": "2" },
    setUp: "rm -rf .git",
    moves: [
      KNOWN,
      search("Start", { roots: ["{ws}"] }),
      search("Update", { query: "alphab" }),
      SEARCHED,
      search("Update", { query: "gamma.ts" }),
      SEARCHED,
      search("Update", { query: "" }),
      SEARCHED,
      search("Stop", {}),
      search("Update", { query: "alphab" }),
    ],
  },
  {
    id: "search-session-refused",
    about: "searches that cannot begin, or never did",
    moves: [
      KNOWN,
      search("Start", { sessionId: "", roots: ["{ws}"] }),
      search("Start", { roots: [] }),
      search("Update", { query: "x" }),
      search("Stop", {}),
    ],
  },
  {
    id: "process-kept",
    about: "processes whose output comes with their end",
    moves: [
      KNOWN,
      spawn("one", shell("echo out; echo err >&2; exit 3")),
      EXITED,
      spawn("capped", shell("printf 1234567890"), { outputBytesCap: 4 }),
      EXITED,
      spawn("late", ["sleep", "60"], { timeoutMs: 200 }),
      EXITED,
      spawn("env", shell("echo $FOO-$HOME"), { env: { FOO: "bar", HOME: null } }),
      EXITED,
      spawn("killed", shell("kill -9 $$")),
      EXITED,
    ],
  },
  {
    id: "environment-of-commands",
    about: "what clients' own commands and processes see of the environment, by policy and by what they name",
    config: `${MOCK_CONFIG}
[shell_environment_policy]
inherit = "core"
exclude = ["LANG"]
set = { FROM_POLICY = "policy", OTHER = "other" }
`,
    moves: [
      KNOWN,
      { call: "command/exec", params: { command: SHOW, cwd: "{ws}" } },
      { call: "command/exec", params: { command: SHOW, cwd: "{ws}", env: { FROM_POLICY: "client", OTHER: null } } },
      spawn("policy", SHOW),
      EXITED,
    ],
  },
  {
    id: "process-streamed",
    about: "processes whose output is streamed, up to a cap and without one",
    moves: [
      KNOWN,
      spawn("one", ["echo", "out"], { streamStdoutStderr: true }),
      EXITED,
      spawn("capped", shell("printf 1234567890; sleep 0.3"), { streamStdoutStderr: true, outputBytesCap: 4 }),
      EXITED,
      spawn("free", ["echo", "out"], { streamStdoutStderr: true, outputBytesCap: null, timeoutMs: null }),
      EXITED,
    ],
  },
  {
    id: "process-input",
    about: "a process reads what its client writes, until it is closed",
    moves: [
      KNOWN,
      spawn("cat", ["cat"], { streamStdin: true }),
      stdin("cat", { deltaBase64: base64("one\n") }),
      stdin("cat", { deltaBase64: base64("two\n"), closeStdin: true }),
      EXITED,
      stdin("cat", { closeStdin: true }),
      stdin("cat", {}),
      stdin("cat", { deltaBase64: "!!" }),
    ],
  },
  {
    id: "process-terminal",
    about: "a process has a terminal, and its size changes",
    // How a terminal cuts what it shows is chance.
    unsteady: ["process/outputDelta"],
    moves: [
      KNOWN,
      spawn("tty", shell("stty size; read x; stty size"), { tty: true, size: { rows: 30, cols: 90 } }),
      { until: "process/outputDelta" },
      { call: "process/resizePty", params: { processHandle: "tty", size: { rows: 10, cols: 20 } } },
      stdin("tty", { deltaBase64: base64("x\n") }),
      EXITED,
      { call: "process/resizePty", params: { processHandle: "tty", size: { rows: 10, cols: 20 } } },
      { call: "process/resizePty", params: { processHandle: "tty", size: { rows: 0, cols: 20 } } },
    ],
  },
  {
    id: "process-killed",
    about: "a process that runs: its name is taken, its input closed, and it is ended",
    moves: [
      KNOWN,
      spawn("one", ["sleep", "60"]),
      spawn("one", ["true"]),
      stdin("one", { deltaBase64: base64("x") }),
      { call: "process/resizePty", params: { processHandle: "one", size: { rows: 10, cols: 20 } } },
      { call: "process/kill", params: { processHandle: "one" } },
      EXITED,
      { call: "process/kill", params: { processHandle: "one" } },
      spawn("one", ["true"]),
      EXITED,
    ],
  },
  {
    id: "process-refused",
    about: "processes that cannot be started",
    moves: [
      KNOWN,
      spawn("one", []),
      spawn("", ["true"]),
      spawn("one", ["true"], { cwd: "/no/such" }),
      spawn("one", ["true"], { cwd: "relative" }),
      spawn("one", ["true"], { size: { rows: 1, cols: 1 } }),
      spawn("one", ["true"], { timeoutMs: -1 }),
      { call: "process/spawn", params: { command: ["true"], cwd: "{ws}" } },
      { call: "process/spawn", params: { command: ["true"], processHandle: "one" } },
      spawn("one", ["/no/such"]),
    ],
  },
];
