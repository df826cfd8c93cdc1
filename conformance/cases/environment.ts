/** What commands see of the environment, by default and under `shell_environment_policy`. */
import { command, json, MOCK_CONFIG, say, type ExecCase, type Step } from "../exec-case.ts";

const ENV = { JAVA_HOME: "/opt/java", VIRTUAL_ENV: "{ws}/.venv", MY_WORD: "word" };
const SECRETS = { A_TOKEN: "tok-1", A_SECRET: "sec-1", API_KEYS: "key-1" };

/** Each name with its value, or that there is none. */
function show(...names: readonly string[]): readonly Step[] {
  const line = `printf '%s=%s\\n' $name "$(printenv $name || echo -)"`;
  return [command(`for name in ${names.join(" ")}; do ${line}; done; sleep 0.3`), say("Shown.")];
}

function policy(id: string, about: string, lines: string): ExecCase {
  return {
    id: `environment-${id}`,
    about: `commands' environment: ${about}`,
    config: lines === "" ? MOCK_CONFIG : `${MOCK_CONFIG}[shell_environment_policy]\n${lines}\n`,
    script: show(...Object.keys(ENV), "HOME", "ADDED"),
    runs: [{ ...json(), env: ENV }],
  };
}

function withSecrets(id: string, about: string, lines: string): ExecCase {
  return {
    ...policy(id, about, lines),
    script: show(...Object.keys(ENV), ...Object.keys(SECRETS), "MOCK_KEY"),
    runs: [{ ...json(), env: { ...ENV, ...SECRETS } }],
  };
}

export const ENVIRONMENT_CASES: readonly ExecCase[] = [
  policy("default", "nothing is said", ""),
  withSecrets("secrets", "nothing is said, and there are secrets", ""),
  withSecrets("default-excludes", "without what looks like a secret", "ignore_default_excludes = false"),
  withSecrets("no-default-excludes", "with what looks like a secret", "ignore_default_excludes = true"),
  policy("core", "only the core", 'inherit = "core"'),
  policy(
    "none",
    "nothing but what is set",
    'inherit = "none"\nset = { ADDED = "x", PATH = "/usr/bin:/bin", SHLVL = "1" }',
  ),
  policy("excluded", "patterns of names that are left out", 'exclude = ["MY_*", "java_home"]'),
  policy(
    "included",
    "only names of these patterns",
    'include_only = ["PATH", "*_HOME", "ADDED", "SHLVL"]\nset = { ADDED = "x", MY_WORD = "left out", SHLVL = "1" }',
  ),
  policy("filters", "the newer form of patterns", 'filters = { "MY_*" = "exclude", "VIRTUAL_ENV" = "exclude" }'),
  policy("set", "values of the configuration", 'set = { ADDED = "by config", MY_WORD = "other" }\nexclude = ["ADDED"]'),
  policy("profile", "the shell's start files are asked for", "experimental_use_profile = true"),
  policy("wrong", "a word that is no choice", 'inherit = "some"'),
  {
    ...policy("override", "by -c, joined with the file", 'set = { MY_WORD = "by file" }'),
    runs: [
      {
        ...json("-c", "shell_environment_policy.inherit=core", "-c", 'shell_environment_policy.set={ADDED="by flag"}'),
        env: ENV,
      },
    ],
  },
];
