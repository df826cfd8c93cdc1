/**
 * Programs of other makers that carry out turns: how each is started and asked about itself, where it keeps its login, and
 * which hosts its models are at. Nothing of them comes with Heddle; the user's own install is driven.
 */
import { join } from "node:path";

/** How a program is spoken to. */
export const AGENT_PROTOCOLS = ["codex", "codex-exec", "claude", "opencode", "acp"] as const;
export type AgentProtocol = (typeof AGENT_PROTOCOLS)[number];

/** Whose record of a conversation a program keeps, as far as Heddle can read it. */
export type RecordKind = "codex" | "claude" | "opencode" | "copilot" | "gemini" | "qwen";

type Environment = Readonly<Record<string, string | undefined>>;

export interface KnownProgram {
  readonly protocol: AgentProtocol;
  readonly command: string;
  readonly args: readonly string[];
  /** Where it is spoken to in another way. */
  readonly otherArgs?: Readonly<Partial<Record<AgentProtocol, readonly string[]>>>;
  /** Folders that hold its login and its record; it may write there. */
  readonly folders: (home: string, env: Environment) => readonly string[];
  /** Where its models are. */
  readonly hosts: readonly string[];
  /** Variables that it needs here. */
  readonly variables: (folders: readonly string[]) => Readonly<Record<string, string>>;
  /** Exit code 0: it is logged in. Absent: it has no such question. */
  readonly statusArgs?: readonly string[];
  readonly install: string;
  readonly logIn: string;
  /** Its own interface, for a person who continues a conversation: what comes after the command. Absent: not known. */
  readonly resume?: (handle: string) => readonly string[];
  /** The program of that interface, where it is another one. */
  readonly byHand?: string;
  /** What it keeps of its conversations; absent: not known. */
  readonly record?: RecordKind;
}

const named = (env: Environment, name: string, otherwise: string): string => env[name] || otherwise;

const xdg = (home: string, env: Environment, name: string): string[] => [
  join(named(env, "XDG_CONFIG_HOME", join(home, ".config")), name),
  join(named(env, "XDG_DATA_HOME", join(home, ".local", "share")), name),
  join(named(env, "XDG_STATE_HOME", join(home, ".local", "state")), name),
  join(named(env, "XDG_CACHE_HOME", join(home, ".cache")), name),
];

const CODEX: Omit<KnownProgram, "protocol" | "args"> = {
  command: "codex",
  folders: (home, env) => [named(env, "CODEX_HOME", join(home, ".codex"))],
  hosts: ["api.openai.com", "chatgpt.com", "*.chatgpt.com", "auth.openai.com"],
  variables: () => ({}),
  statusArgs: ["login", "status"],
  install: "npm install -g @openai/codex",
  logIn: "codex login",
  resume: (handle) => ["resume", handle],
  record: "codex",
};

export const KNOWN_PROGRAMS: Readonly<Record<string, KnownProgram>> = {
  codex: { ...CODEX, protocol: "codex", args: ["app-server"] },
  "codex-exec": { ...CODEX, protocol: "codex-exec", args: ["exec", "--json"] },
  claude: {
    protocol: "claude",
    command: "claude",
    args: [],
    folders: (home, env) => [named(env, "CLAUDE_CONFIG_DIR", join(home, ".claude"))],
    hosts: ["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"],
    // Its record stays in one folder; otherwise it writes beside it, where nothing may be written.
    variables: ([folder]) => ({
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ...(folder === undefined ? {} : { CLAUDE_CONFIG_DIR: folder }),
    }),
    statusArgs: ["auth", "status"],
    install: "npm install -g @anthropic-ai/claude-code",
    logIn: "claude auth login",
    resume: (handle) => ["--resume", handle],
    record: "claude",
  },
  opencode: {
    protocol: "opencode",
    command: "opencode",
    args: ["serve"],
    otherArgs: { acp: ["acp"] },
    folders: (home, env) => xdg(home, env, "opencode"),
    hosts: ["opencode.ai", "*.opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com"],
    variables: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1" }),
    install: "npm install -g opencode-ai",
    logIn: "opencode auth login",
    resume: (handle) => ["--session", handle],
    record: "opencode",
  },
  copilot: {
    protocol: "acp",
    command: "copilot",
    args: ["--acp"],
    folders: (home, env) => [
      named(env, "COPILOT_HOME", join(home, ".copilot")),
      join(named(env, "XDG_CACHE_HOME", join(home, ".cache")), "copilot"),
    ],
    hosts: ["api.github.com", "github.com", "*.githubcopilot.com"],
    variables: () => ({ COPILOT_AUTO_UPDATE: "false" }),
    install: "npm install -g @github/copilot",
    logIn: "copilot, then /login",
    resume: (handle) => [`--resume=${handle}`],
    record: "copilot",
  },
  gemini: {
    protocol: "acp",
    command: "gemini",
    args: ["--acp"],
    folders: (home) => [join(home, ".gemini")],
    hosts: [
      "generativelanguage.googleapis.com",
      "cloudcode-pa.googleapis.com",
      "oauth2.googleapis.com",
      "*.aiplatform.googleapis.com",
    ],
    variables: () => ({}),
    install: "npm install -g @google/gemini-cli",
    logIn: "gemini, then choose how to log in",
    resume: (handle) => ["--resume", handle],
    record: "gemini",
  },
  qwen: {
    protocol: "acp",
    command: "qwen",
    args: ["--acp"],
    folders: (home) => [join(home, ".qwen")],
    hosts: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "chat.qwen.ai", "portal.qwen.ai"],
    variables: () => ({}),
    install: "npm install -g @qwen-code/qwen-code",
    logIn: "qwen, then /auth",
    resume: (handle) => ["--resume", handle],
    record: "qwen",
  },
};

/** Commands that speak ACP for the program of a runner: a conversation is that program's, which a person continues with it. */
export const ADAPTERS: Readonly<Record<string, "claude" | "codex">> = {
  "claude-agent-acp": "claude",
  "claude-code-acp": "claude",
  "codex-acp": "codex",
};

/** Of an agent that only the configuration knows. */
export const OTHER_PROGRAM: Omit<KnownProgram, "protocol" | "command"> = {
  args: [],
  folders: () => [],
  hosts: [],
  variables: () => ({}),
  install: "install it, or name its command in config.toml",
  logIn: "log in with the program itself",
};

/** Of people and other programs: no agent has business there. Relative to the user's home. */
export const CREDENTIAL_PLACES: readonly string[] = [
  ".ssh",
  ".gnupg",
  ".aws",
  ".azure",
  ".kube",
  ".netrc",
  ".git-credentials",
  ".docker/config.json",
  ".config/gcloud",
  ".config/gh",
  // Of an agent program that only the configuration knows.
  ".cline",
];
