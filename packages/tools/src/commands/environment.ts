/**
 * The environment of a command is built from an allow-list: other variables do not reach it. So provider keys, tokens,
 * agent sockets and loader variables stay with Heddle although no list names them.
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
