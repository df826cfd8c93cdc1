/** Ordinary calls: keys that only one of the programs knows, a provider that says little, every way to leave standard input. */
import { command, human, json, MOCK_CONFIG, MOCK_PROVIDER, say, type ExecCase, type Invocation } from "../exec-case.ts";

const HELLO = [say("Hello.")];
const KEYLESS = `[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`;

function overrides(...keys: readonly string[]): readonly string[] {
  return keys.flatMap((key) => ["-c", key]);
}

/** The program as part of a shell line, where it is `"$@"`. */
const inShell = (wrapper: string, args: readonly string[] = ["exec", "--json", "do it"]): Invocation => ({
  args,
  wrapper,
});

export const CALL_CASES: readonly ExecCase[] = [
  {
    id: "key-of-provider",
    about: "a key of a provider that has no use here, by -c",
    script: HELLO,
    runs: [json("-c", "model_providers.mock.supports_websockets=false")],
  },
  {
    id: "key-of-provider-unknown",
    about: "a key of a provider that nobody knows, by -c",
    script: HELLO,
    runs: [json("-c", "model_providers.mock.no_such_key=1")],
  },
  {
    id: "keys-of-tables",
    about: "keys in tables of Codex, some known, some not, by -c",
    script: HELLO,
    runs: [
      json(
        ...overrides(
          "tui.notifications=true",
          "features.no_such=true",
          'history.persistence="none"',
          "tools.web_search=false",
          "sandbox_workspace_write.exclude_slash_tmp=true",
          "profiles.x.model_verbosity=low",
          "hooks.no_such=1",
        ),
      ),
    ],
  },
  {
    id: "key-near-miss",
    about: "a key by -c that is one letter off",
    script: HELLO,
    runs: [json("-c", "sandbox_mod=read-only")],
  },
  {
    id: "keys-of-file",
    about: "a config.toml full of keys that have no use here, at every depth",
    config: `${MOCK_CONFIG}supports_websockets = false
websocket_connect_timeout_ms = 5
[tui]
notifications = true
[features]
no_such = true
[history]
persistence = "none"
[mcp_servers.off]
command = "true"
enabled = false
no_such_key = 1
[projects."/nowhere"]
trust_level = "trusted"
no_such_key = 1
`,
    script: HELLO,
    runs: [json()],
  },
  {
    id: "key-of-wrong-kind",
    about: "a key that has no use here, with a value Codex refuses",
    script: HELLO,
    runs: [json("-c", "model_providers.mock.supports_websockets=maybe")],
  },
  {
    id: "provider-without-model",
    about: "a provider of the user's own, and no model named",
    config: `model_provider = "mock"\n${MOCK_PROVIDER}`,
    script: HELLO,
    runs: [json(), human()],
  },
  {
    id: "provider-openai-auth",
    about: "a provider that wants the key of OpenAI, which stands in CODEX_API_KEY",
    config: `model = "gpt-5.5"\nmodel_provider = "mock"\n${KEYLESS}requires_openai_auth = true\n`,
    script: HELLO,
    runs: [{ ...json(), env: { CODEX_API_KEY: "given-key" } }],
  },
  {
    id: "provider-openai-auth-stored",
    about: "a provider that wants the key of OpenAI, which Codex has stored",
    config: `model = "gpt-5.5"\nmodel_provider = "mock"\n${KEYLESS}requires_openai_auth = true\n`,
    files: { "codex/auth.json": '{"OPENAI_API_KEY":"stored-key"}' },
    script: HELLO,
    runs: [json()],
  },
  {
    id: "provider-openai-auth-env",
    about: "a provider that wants the key of OpenAI, which stands in OPENAI_API_KEY",
    config: `model = "gpt-5.5"\nmodel_provider = "mock"\n${KEYLESS}requires_openai_auth = true\n`,
    script: HELLO,
    runs: [{ ...json(), env: { OPENAI_API_KEY: "env-key" } }],
  },
  {
    id: "provider-openai-auth-none",
    about: "a provider that wants the key of OpenAI, and there is none",
    config: `model = "gpt-5.5"\nmodel_provider = "mock"\n${KEYLESS}requires_openai_auth = true\n`,
    script: HELLO,
    runs: [json()],
  },
  {
    id: "provider-keyless",
    about: "a provider that wants no key, and one of OpenAI is there",
    config: `model = "gpt-5.5"\nmodel_provider = "mock"\n${KEYLESS}`,
    script: HELLO,
    runs: [{ ...json(), env: { CODEX_API_KEY: "given-key", OPENAI_API_KEY: "env-key" } }],
  },
  {
    id: "provider-env-key-and-openai-auth",
    about: "a provider with a key of its own that wants that of OpenAI too",
    config: `${MOCK_CONFIG}requires_openai_auth = true\n`,
    script: HELLO,
    runs: [{ ...json(), env: { CODEX_API_KEY: "given-key" } }],
  },
  {
    id: "added-folder-missing",
    about: "--add-dir of a folder that is not there",
    script: [command("echo x > made.txt; sleep 0.4"), say("Wrote.")],
    runs: [json("-s", "workspace-write", "--add-dir", "{root}/none")],
    looksAt: ["ws/made.txt"],
  },
  {
    id: "added-folder-is-file",
    about: "--add-dir of a file",
    files: { "plain.txt": "text" },
    script: HELLO,
    runs: [json("-s", "workspace-write", "--add-dir", "{root}/plain.txt")],
  },
  {
    id: "added-folder-read-only",
    about: "--add-dir in a sandbox that lets nothing be written",
    files: { "more/keep.txt": "" },
    script: HELLO,
    runs: [json("-s", "read-only", "--add-dir", "{root}/more")],
  },
  {
    id: "git-folder-empty",
    about: "an empty .git folder",
    isOutsideGit: true,
    setUp: "mkdir .git",
    script: HELLO,
    runs: [json()],
  },
  {
    id: "git-file-of-worktree",
    about: "a .git file, as worktrees have one",
    isOutsideGit: true,
    setUp: "git init -q --separate-git-dir {root}/elsewhere.git .",
    script: HELLO,
    runs: [json()],
  },
  {
    id: "git-file-empty",
    about: "an empty .git file",
    isOutsideGit: true,
    setUp: "touch .git",
    script: HELLO,
    runs: [json()],
  },
  { id: "stdin-closed", about: "standard input is closed", script: HELLO, runs: [inShell('"$@" <&-')] },
  { id: "stdin-null", about: "standard input is /dev/null", script: HELLO, runs: [inShell('"$@" < /dev/null')] },
  {
    id: "stdin-file",
    about: "standard input is a file",
    files: { "input.txt": "from a file\n" },
    script: HELLO,
    runs: [inShell('"$@" < ../input.txt'), inShell('"$@" < ../input.txt', ["exec", "--json", "-"])],
  },
  {
    id: "stdin-file-empty",
    about: "standard input is an empty file",
    files: { "input.txt": "" },
    script: HELLO,
    runs: [inShell('"$@" < ../input.txt'), inShell('"$@" < ../input.txt', ["exec", "--json"])],
  },
  {
    id: "stdin-pipe",
    about: "standard input is a pipe of a shell, written late",
    script: HELLO,
    runs: [inShell('{ sleep 1; echo "from a pipe"; } | "$@"')],
  },
  {
    id: "stdin-pipe-ended",
    about: "standard input is a pipe that brings nothing",
    script: HELLO,
    runs: [inShell(': | "$@"')],
  },
  {
    id: "stdin-pipe-held",
    about: "standard input is a pipe that whoever started the run keeps open",
    script: HELLO,
    runs: [inShell('mkfifo ../held; exec 3<>../held; "$@" < ../held')],
    deadlineMs: 15_000,
  },
  {
    id: "stdin-closed-no-prompt",
    about: "no argument, and standard input is closed",
    runs: [inShell('"$@" <&-', ["exec", "--json"])],
  },
  {
    id: "stdin-terminal",
    about: "standard input is a terminal",
    script: HELLO,
    runs: [inShell(`script -qec "$1 exec --json go 2> /dev/null" /dev/null`)],
  },
];
