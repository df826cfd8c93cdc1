/** Options of commands that read the configuration, and what they come to. */
import { readConfiguration, type ConfigChoices, type Configuration } from "@heddle/runtime/config";
import type { OptionSpec, ParsedArgs } from "./args.ts";
import { say } from "./print/screen.ts";

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

export function configChoices(args: ParsedArgs): ConfigChoices {
  return {
    overrides: args.values("config"),
    isIgnored: args.has("ignore-user-config"),
    isStrict: args.has("strict-config"),
    profile: args.value("profile"),
  };
}

/** What is wrong with it and stops nothing is printed. */
export async function readConfigOf(args: ParsedArgs, env: NodeJS.ProcessEnv): Promise<Configuration> {
  const configuration = await readConfiguration(configChoices(args), env);
  for (const warning of configuration.warnings) say(warning);
  return configuration;
}
