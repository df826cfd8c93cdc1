/**
 * The environments of commands. What Heddle itself runs, checks and MCP servers get an allow-list. The commands of agents
 * get what the policy of their turn says: by default everything that is not, and does not look like, a secret. Keys that
 * Heddle uses reach no command, whatever the policy says.
 */
import { defined, type EnvironmentPolicy } from "@heddle/protocol";

const ALLOWED: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "LANG",
  "LANGUAGE",
  "TERM",
  "TZ",
  "TMPDIR",
  "USER",
  "LOGNAME",
  "SHELL",
  "CI",
  "COLORTERM",
  "NO_COLOR",
  "FORCE_COLOR",
]);

const ALLOWED_PREFIX = "LC_";

/** Used when Heddle itself was started without a PATH. */
const FALLBACK_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The complete environment for a command. `extra` is taken as it is: the configuration or Heddle itself chose each
 * entry.
 */
export function commandEnvironment(
  source: NodeJS.ProcessEnv,
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const environment: Record<string, string> = { PATH: FALLBACK_PATH };
  for (const [name, value] of Object.entries(source)) {
    if (value === undefined || value.includes("\0")) continue;
    if (ALLOWED.has(name) || isLocale(name)) environment[name] = value;
  }
  return { ...environment, ...extra };
}

/** LC_ALL, LC_TIME and the like, but not LC_SECRET_key. */
function isLocale(name: string): boolean {
  return name.startsWith(ALLOWED_PREFIX) && /^LC_[A-Z]+$/.test(name);
}

export interface AgentEnvironment {
  readonly source: NodeJS.ProcessEnv;
  readonly policy: EnvironmentPolicy;
  /** A key that Heddle uses, by the name of its variable or its value. */
  readonly isKey: (name: string, value: string) => boolean;
  /** A value of a form that only secrets have. */
  readonly looksSecret: (value: string) => boolean;
}

/** The complete environment for the commands of an agent. The order of the steps is Codex's. */
export function agentEnvironment({ source, policy, isKey, looksSecret }: AgentEnvironment): Record<string, string> {
  const { inherit = "all", ignoresDefaultExcludes = false, exclude = [], includeOnly = [] } = policy;
  const isSecret = (name: string, value: string): boolean => SECRET_NAME.test(name) || looksSecret(value);
  const isIn = (patterns: readonly string[], name: string): boolean => patterns.some((one) => isMatch(one, name));
  const inherited = Object.entries(source).filter(([name, value = ""]) => {
    if (inherit === "none" || (inherit === "core" && !CORE.has(name))) return false;
    if (OF_HEDDLE.test(name) || (!ignoresDefaultExcludes && isSecret(name, value))) return false;
    return !isIn(exclude, name);
  });
  const kept = [...inherited, ...Object.entries(policy.set ?? {})].filter(([name, value = ""]) => {
    if (!/^[A-Za-z_]\w*$/.test(name) || SHELL_VARIABLE.test(name) || value.includes("\0") || isKey(name, value))
      return false;
    return includeOnly.length === 0 || isIn(includeOnly, name);
  });
  return { PATH: FALLBACK_PATH, ...defined(Object.fromEntries(kept)) };
}

const CORE = new Set("PATH SHELL TMPDIR TEMP TMP HOME LANG LC_ALL LC_CTYPE LOGNAME USER".split(" "));

/** Codex leaves out the first three; passwords, credentials and sockets of agents are no less secret. */
const SECRET_NAME = /key|secret|token|passw|credential|(^|_)auth(_|$)/i;

/** Its home is not in reach of commands. */
const OF_HEDDLE = /^HEDDLE_/;

/** A shell sets these itself, or refuses to, or runs what they name before the command. */
export const SHELL_VARIABLE = /^(?:_|PWD|OLDPWD|SHLVL|E?UID|PPID|SHELLOPTS|BASH(?:OPTS|_\w*)?)$/;

/** `*` stands for any letters, `?` for one; in one pass, whatever a client writes. */
function isMatch(pattern: string, name: string): boolean {
  const [wanted, text] = [pattern.toLowerCase(), name.toLowerCase()];
  let [at, from, star, resume] = [0, 0, -1, 0];
  while (from < text.length) {
    if (wanted[at] === "*") [star, resume, at] = [at, from, at + 1];
    else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === text[from])) [at, from] = [at + 1, from + 1];
    else if (star >= 0) [resume, from, at] = [resume + 1, resume + 1, star + 1];
    else return false;
  }
  return /^\**$/.test(wanted.slice(at));
}
