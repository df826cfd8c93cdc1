/** What every long-lived server begins with: its configuration, its engine, and how it waits for its end. */
import { mkdir } from "node:fs/promises";
import { openHeddle, type Heddle } from "@heddle/agent";
import type { Redactor } from "@heddle/journal";
import type { ProviderConfig } from "@heddle/models";
import { EXIT, isHeddleError } from "@heddle/protocol";
import type { Host } from "@heddle/server";
import type { OptionSpec, ParsedArgs } from "../args.ts";
import { parseOverrides } from "../config/check-config.ts";
import { backgroundOf, hooksOf, mcpServersOf } from "../config/extensions.ts";
import { limitOptions } from "../config/limits.ts";
import { withLazyLogins, withLogin } from "../config/logins.ts";
import { heddleHome, loadConfig } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { effectiveConfig, providerConfigs } from "../config/settings.ts";
import { say } from "../print/screen.ts";

export const CONFIG_OPTIONS: readonly OptionSpec[] = [
  {
    name: "config",
    short: "c",
    value: "KEY=VALUE",
    isMultiple: true,
    help: "Override a key of config.toml; VALUE is TOML, or text",
  },
  { name: "profile", short: "p", value: "NAME", help: "Use [profiles.NAME] of config.toml" },
  { name: "ignore-user-config", help: "Read no config.toml" },
  { name: "strict-config", help: "Refuse unknown keys in Codex's config.toml too" },
];

export interface ReadConfig {
  /** What is wrong with it and can be lived with; clients are told. */
  readonly warnings: readonly string[];
  readonly file: ConfigFile;
  readonly config: ConfigFile;
}

export async function readConfig(args: ParsedArgs, env: NodeJS.ProcessEnv): Promise<ReadConfig> {
  const profile = args.value("profile");
  const loading = { isIgnored: args.has("ignore-user-config"), isStrict: args.has("strict-config"), profile };
  const { config: overrides, passedOver } = parseOverrides(args.values("config"), loading);
  const { config: file } = await loadConfig(env, loading);
  const warnings =
    passedOver.length > 0 ? [`unknown configuration keys, without effect here: ${passedOver.join(", ")}`] : [];
  for (const warning of warnings) log(warning);
  return { warnings, file, config: effectiveConfig({ file, overrides }, profile) };
}

export async function makeHome(env: NodeJS.ProcessEnv): Promise<string> {
  const home = heddleHome(env);
  await mkdir(home, { recursive: true, mode: 0o700 });
  return home;
}

/** Attended: clients can be asked. What is masked for the commands of clients is masked for agents too. */
export async function openEngine(
  home: string,
  config: ConfigFile,
  env: NodeJS.ProcessEnv,
  { masked, skills, redactor }: Pick<Host, "masked" | "skills"> & { readonly redactor: Redactor },
): Promise<Heddle> {
  const heddle = await openHeddle({
    home,
    providers: await providersOf(config, env, redactor),
    redactor,
    env,
    log,
    isUnattended: false,
    masked: masked ?? [],
    skills,
    mcpServers: await mcpServersOf(config, env),
    hooks: hooksOf(config),
    background: backgroundOf(config),
    ...limitOptions(config),
    ...(config.approval_timeout_sec === undefined ? {} : { approvalTimeoutMs: config.approval_timeout_sec * 1000 }),
    ...(config.client_tool_timeout_sec === undefined ? {} : { clientToolMs: config.client_tool_timeout_sec * 1000 }),
  });
  if (heddle.recoveredTurns > 0) log(`${heddle.recoveredTurns} turns of dead processes were closed`);
  return heddle;
}

/** Called when everything is closed: an end that the store could not take is no success, whatever else went well. */
export function tellUnstoredEnds({ unstoredEnds }: Heddle, exitCode: number): number {
  if (unstoredEnds === 0) return exitCode;
  const [turns, them] = unstoredEnds === 1 ? ["1 turn", "it"] : [`${unstoredEnds} turns`, "them"];
  log(`the end of ${turns} could not be stored; the next start closes ${them}: free some space, then heddle doctor`);
  return exitCode === EXIT.ok ? EXIT.infrastructure : exitCode;
}

/** A server without a key still lists and reads; the first turn says what is missing, unless a client has logged in by then. */
async function providersOf(
  config: ConfigFile,
  env: NodeJS.ProcessEnv,
  { learn }: Redactor,
): Promise<readonly ProviderConfig[]> {
  const configs = providerConfigs(config, {}, env);
  try {
    return withLazyLogins(await withLogin(configs, config.model_provider ?? "openai", env, learn), env, learn);
  } catch (error) {
    if (isHeddleError(error) && error.code === "auth.missing") return withLazyLogins(configs, env, learn);
    throw error;
  }
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // The timer keeps the process alive while nothing else does.
    const alive = setInterval(() => undefined, 60_000);
    signal.addEventListener(
      "abort",
      () => {
        clearInterval(alive);
        resolve();
      },
      { once: true },
    );
  });
}

export function log(line: string): void {
  say(line);
}
