/** The table `shell_environment_policy`, as the agent takes it. */
import type { EnvironmentPolicy } from "@heddle/protocol";
import type { ConfigFile } from "../config/schema.ts";

export function environmentOf({ shell_environment_policy: table }: ConfigFile): EnvironmentPolicy | undefined {
  if (table === undefined || Object.keys(table).length === 0) return undefined;
  const { inherit, ignore_default_excludes: ignoresDefaultExcludes, filters = {}, set } = table;
  const filtered = (kind: string): string[] =>
    Object.entries(filters).flatMap(([name, action]) => (action === kind ? [name] : []));
  const exclude = [...(table.exclude ?? []), ...filtered("exclude")];
  const includeOnly = [...(table.include_only ?? []), ...filtered("include")];
  return {
    ...(inherit === undefined ? {} : { inherit }),
    ...(ignoresDefaultExcludes === undefined ? {} : { ignoresDefaultExcludes }),
    ...(exclude.length === 0 ? {} : { exclude }),
    ...(includeOnly.length === 0 ? {} : { includeOnly }),
    ...(set === undefined ? {} : { set }),
  };
}
