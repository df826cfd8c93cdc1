/**
 * The environment tests run in: the caller's, without anything that could change their outcome. Keys must not let a
 * test reach a real provider, and a variable of Git, npm or Node must not steer the programs that tests start.
 * HEDDLE_E2E_* stays: it only asks for more of the same tests. The compile cache of Node is that of the run: programs that
 * tests start from source load in half the time when another one has loaded the same files before.
 */
const STRIPPED: readonly RegExp[] = [
  /_API_KEY$/,
  /_(ACCESS_|AUTH_|SECRET_|OAUTH_)?(TOKEN|SECRET|PASSWORD|CREDENTIALS)$/,
  /^(HEDDLE(?!_E2E_)|CODEX|OPENAI|OPENROUTER|ANTHROPIC|CLAUDE|GEMINI|GOOGLE|AZURE|AWS|OLLAMA)(_|$)/,
  /^(https?|all|no)_proxy$/i,
  /^GIT_/,
  /^XDG_/,
  /^npm_/i,
  /^(NODE_OPTIONS|NODE_PATH|NODE_ENV|NODE_COMPILE_CACHE|INIT_CWD|VITEST.*|FORCE_COLOR)$/,
];

export function testEnvironment(
  environment: NodeJS.ProcessEnv,
  folders: { readonly home: string; readonly temporary: string; readonly compiled: string },
): NodeJS.ProcessEnv {
  const kept = Object.entries(environment).filter(([name]) => !STRIPPED.some((pattern) => pattern.test(name)));
  return {
    ...Object.fromEntries(kept),
    HOME: folders.home,
    TMPDIR: folders.temporary,
    NODE_COMPILE_CACHE: folders.compiled,
  };
}
