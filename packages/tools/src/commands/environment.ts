/**
 * The environment of a command is built from an allow-list: what is not named here does not reach it. Provider keys,
 * tokens, agent sockets and loader variables stay with Heddle because nobody listed them, not because somebody thought
 * of them.
 */

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
 * The complete environment for a command. `extra` is what the caller (configuration, a tool) names on purpose: it is
 * taken as it is, because a person or Heddle itself chose each entry.
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

/** LC_ALL, LC_TIME and the like; an invented LC_SECRET_key is not one. */
function isLocale(name: string): boolean {
  return name.startsWith(ALLOWED_PREFIX) && /^LC_[A-Z]+$/.test(name);
}
