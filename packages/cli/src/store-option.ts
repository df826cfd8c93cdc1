/** `--store`, of commands that work at a store of several machines. */
import type { OptionSpec, ParsedArgs } from "./args.ts";

export const STORE_OPTION: OptionSpec = {
  name: "store",
  value: "URL",
  help: "postgres://USER@HOST/DATABASE, which machines share; default: HEDDLE_STORE, then the file of this home",
};

/** The environment with the store that the command names. */
export function withStore(args: ParsedArgs, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const store = args.value("store");
  return store === undefined ? env : { ...env, HEDDLE_STORE: store };
}
