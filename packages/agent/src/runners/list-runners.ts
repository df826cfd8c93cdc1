/** Every runner of a configuration with what is on this machine of it, without an engine. */
import { isHeddleError, reasonOf } from "@heddle/protocol";
import { capabilities, EVERY_ABILITY, type RunnerCapabilities } from "./abilities.ts";
import { EMBEDDED, requireRunnerName, runnerNames, type RunnerConfigs } from "./config.ts";
import { OWN_HEALTH } from "./own-health.ts";
import { dialectOf } from "./programs/dialects.ts";
import { examine, programOf } from "./programs/find-program.ts";
import type { RunnerHealth } from "./runner.ts";

export { RUNNER_ABILITIES } from "./abilities.ts";

export interface ListedRunner extends RunnerHealth {
  readonly name: string;
  readonly capabilities: RunnerCapabilities;
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface ListOptions {
  /** Absent: all. `runner.unknown` where there is none of the name. */
  readonly only?: string | undefined;
  readonly signal: AbortSignal;
}

/** Side by side; a program that does not answer in time is listed with that. */
export async function listRunners(
  configs: RunnerConfigs,
  env: Environment,
  { only, signal }: ListOptions,
): Promise<readonly ListedRunner[]> {
  if (only !== undefined) requireRunnerName(configs, only);
  const names = only === undefined ? runnerNames(configs) : [only];
  return Promise.all(names.map((name) => listed(name, { configs, env, signal })));
}

interface Listing {
  readonly configs: RunnerConfigs;
  readonly env: Environment;
  readonly signal: AbortSignal;
}

async function listed(name: string, { configs, env, signal }: Listing): Promise<ListedRunner> {
  if (name === EMBEDDED) return { name, capabilities: EVERY_ABILITY, ...OWN_HEALTH };
  try {
    const program = programOf(name, configs[name] ?? {}, env);
    const dialect = await dialectOf(program);
    return { name, capabilities: dialect.capabilities, ...(await examine(program, env, signal)) };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    const problem = { message: reasonOf(error), fix: `correct [runners.${name}] in config.toml` };
    return { name, capabilities: capabilities(), isInstalled: false, login: "unknown", problems: [problem] };
  }
}
