/** Where the record is kept: `HEDDLE_STORE`, or `[store] url` of the configuration; undefined: in the home. */
import { isHeddleError } from "@heddle/protocol";
import { loadConfig } from "./read-config.ts";
import type { ConfigFile } from "./schema.ts";

export function storeAddress(config: Pick<ConfigFile, "store">, env: NodeJS.ProcessEnv): string | undefined {
  const given = env["HEDDLE_STORE"];
  return given === undefined || given === "" ? config.store?.url : given;
}

/** For commands that use nothing else of the configuration: one that is wrong elsewhere does not stop them. */
export async function storeAddressOf(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { config } = await loadConfig(env).catch((error: unknown) => {
    if (isHeddleError(error)) return { config: {} };
    throw error;
  });
  return storeAddress(config, env);
}
