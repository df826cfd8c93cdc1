/** What `heddle app-server` lends its clients of the machine it runs on. */
import path from "node:path";
import type { Accounts } from "@heddle/models/accounts";
import type { Host } from "@heddle/server";
import type { ParsedArgs } from "../args.ts";
import { parseOverrides } from "../config/check-config.ts";
import { hooksOf, mcpServersOf } from "../config/extensions.ts";
import { openOwnAccounts } from "../config/open-accounts.ts";
import { loadConfig } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { effectiveConfig } from "../config/settings.ts";
import { configSource } from "./config-source.ts";

export interface OpenHostOptions {
  readonly args: ParsedArgs;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** File, profile and command line as one. */
  readonly config: ConfigFile;
  /** The file says something else from now on. */
  readonly onConfigChange: (file: ConfigFile) => void;
}

export async function openHost(options: OpenHostOptions): Promise<Host & AsyncDisposable> {
  const { args, env, cwd, config } = options;
  const loading = {
    isIgnored: args.has("ignore-user-config"),
    isStrict: args.has("strict-config"),
    profile: args.value("profile"),
  };
  const roots = args.values("write-root").map((root) => path.resolve(cwd, root));
  let opened: Promise<Accounts> | undefined;
  return {
    env,
    writeRoots: roots.length === 0 ? undefined : roots,
    config: configSource({ env, loading, overrides: args.values("config"), onChange: options.onConfigChange }),
    hooks: hooksOf(config),
    mcpServers: await mcpServersOf(config, env),
    async readMcpServers() {
      const { config: overrides } = parseOverrides(args.values("config"), loading);
      const { config: file } = await loadConfig(env, loading);
      return mcpServersOf(effectiveConfig({ file, overrides }, loading.profile), env);
    },
    accounts: () => (opened ??= openOwnAccounts(env)),
    async [Symbol.asyncDispose]() {
      await (await opened?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}
