/** The runners of an engine: Heddle's own loop, and by their names the agent programs, which are loaded when one is chosen. */
import type { Journal } from "@heddle/journal";
import { HeddleError, type TurnSettings } from "@heddle/protocol";
import type { HeddleOptions } from "../heddle.ts";
import { hasCallHooks, requireAbilities, type Wanted } from "./abilities.ts";
import { EMBEDDED, requireRunnerName, type RunnerConfigs } from "./config.ts";
import { createEmbeddedRunner } from "./embedded.ts";
import type { Runner } from "./runner.ts";

export interface Runners {
  /** `runner.unknown` where there is none of the name. */
  of(settings: Pick<TurnSettings, "runner">): Promise<Runner>;
  /** For a turn that is about to be admitted: refused where it asks for more than its runner can do. */
  ready(wanted: Omit<Wanted, "hasCallHooks">): Promise<Runner>;
  /** One that was given before. */
  loaded(settings: Pick<TurnSettings, "runner">): Runner;
}

export function createRunners(
  options: HeddleOptions,
  journal: Journal,
  colleagues: Parameters<typeof createEmbeddedRunner>[2],
): Runners {
  const { runners: configs = {}, env } = options;
  const known = new Map<string, Runner>([
    [EMBEDDED, options.runner ?? createEmbeddedRunner(options, journal, colleagues)],
  ]);
  const given = Object.values(configs).flatMap(({ env: names = [], env_key: key }) =>
    [...names, ...(key === undefined ? [] : [key])].map((name) => env[name] ?? ""),
  );
  journal.redactor.learn(given.filter((value) => value.length >= MIN_SECRET_CHARS));

  async function of({ runner: name = EMBEDDED }: Pick<TurnSettings, "runner">): Promise<Runner> {
    const before = known.get(name);
    if (before !== undefined) return before;
    requireRunnerName(configs, name);
    const runner = await openProgram(name, { ...options, configs, journal });
    known.set(name, runner);
    return runner;
  }

  return {
    of,
    async ready(wanted) {
      const runner = await of(wanted.settings);
      await runner.check(wanted.settings);
      requireAbilities(runner, { ...wanted, hasCallHooks: hasCallHooks(options.hooks ?? []) });
      return runner;
    },
    loaded({ runner: name = EMBEDDED }) {
      const found = known.get(name);
      if (found === undefined) throw new HeddleError("internal", `the runner ${name} was not loaded`);
      return found;
    },
  };
}

/** A shorter one would match ordinary words. */
const MIN_SECRET_CHARS = 8;

interface OpenOptions extends Pick<HeddleOptions, "home" | "env"> {
  readonly configs: RunnerConfigs;
  readonly journal: Journal;
}

async function openProgram(name: string, { home, env, configs, journal }: OpenOptions): Promise<Runner> {
  const [{ createProgramRunner }, { programOf }, { dialectOf }] = await Promise.all([
    import("./programs/program-runner.ts"),
    import("./programs/find-program.ts"),
    import("./programs/dialects.ts"),
  ]);
  const program = programOf(name, configs[name] ?? {}, env);
  const dialect = await dialectOf(program);
  return createProgramRunner({ program, dialect, home, env, journal });
}
