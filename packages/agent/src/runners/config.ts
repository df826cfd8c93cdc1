/** What the owner says of runners, and their names. Loaded by whoever reads settings, so it is small. */
import { didYouMean, HeddleError } from "@heddle/protocol";

/** One `[runners.NAME]`. */
export interface RunnerConfig {
  /** How the program is spoken to; absent: as the runner of this name is. */
  readonly protocol?: "codex" | "codex-exec" | "claude" | "opencode" | "acp" | undefined;
  /** A name on the PATH, or an absolute path. */
  readonly command?: string | undefined;
  /** In place of the usual ones. */
  readonly args?: readonly string[] | undefined;
  /** Names of variables that its program gets although they hold secrets. */
  readonly env?: readonly string[] | undefined;
  /** The only version that is used, or the beginning of it: `2.1`. */
  readonly version?: string | undefined;
  /** Where its login and its record are, in place of the usual folders. */
  readonly folders?: readonly string[] | undefined;
  /** Where its models are, in place of the usual hosts. */
  readonly hosts?: readonly string[] | undefined;
  /** How a person continues a conversation in its own interface: what comes after the command, with `{id}` for the conversation. */
  readonly resume?: readonly string[] | undefined;
  /** Unless a turn names another. */
  readonly model?: string | undefined;
  /** Of a server of OpenCode that runs already, outside every sandbox. */
  readonly url?: string | undefined;
  /** Its user; absent: `opencode`. */
  readonly user?: string | undefined;
  /** The variable with its password. */
  readonly env_key?: string | undefined;
}

export type RunnerConfigs = Readonly<Record<string, RunnerConfig>>;

export const EMBEDDED = "embedded";

/** agent programs that need no configuration. */
export const KNOWN_RUNNERS = ["codex", "codex-exec", "claude", "opencode", "copilot", "gemini", "qwen"] as const;

/** The model that the program of an agent program chooses itself. */
export const DEFAULT_MODEL = "default";

export function runnerNames(configs: RunnerConfigs): readonly string[] {
  return [...new Set([EMBEDDED, ...KNOWN_RUNNERS, ...Object.keys(configs)])];
}

/** `runner.unknown` names those there are. */
export function requireRunnerName(configs: RunnerConfigs, name: string): void {
  const known = runnerNames(configs);
  if (known.includes(name)) return;
  const hint =
    didYouMean(name, known) || `; there are ${known.join(", ")}, and what [runners.NAME] of config.toml adds`;
  throw new HeddleError("runner.unknown", `there is no runner "${name}"${hint}`);
}

/** As `provider:model` names them: their own names mean providers there (`codex:…` is a login of OpenAI's). */
const SELECTORS: Readonly<Record<string, string>> = {
  "codex-cli": "codex",
  "codex-exec": "codex-exec",
  "claude-code": "claude",
  "gemini-cli": "gemini",
  "copilot-cli": "copilot",
  "github-copilot": "copilot",
  "opencode-cli": "opencode",
  "qwen-code": "qwen",
};

/** The runner that stands where a provider could; undefined: it is a provider. */
export function runnerBehind(configs: RunnerConfigs, provider: string): string | undefined {
  const name = provider.toLowerCase().replaceAll("_", "-");
  if (Object.hasOwn(configs, provider) && !isKnown(provider)) return provider;
  return Object.hasOwn(SELECTORS, name) ? SELECTORS[name] : undefined;
}

function isKnown(name: string): boolean {
  return KNOWN_RUNNERS.some((known) => known === name);
}
