/** What the options about the configuration come to. */
import { readConfiguration, type ConfigChoices, type Configuration } from "@heddle/runtime/config";
import type { ParsedArgs } from "./args.ts";
import { say } from "./print/screen.ts";

export function configChoices(args: ParsedArgs): ConfigChoices {
  return {
    overrides: [
      ...args.values("enable").map((feature) => `features.${feature}=true`),
      ...args.values("disable").map((feature) => `features.${feature}=false`),
      ...args.values("config"),
    ],
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
