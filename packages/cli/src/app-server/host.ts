/** What `heddle app-server` lends its clients of the machine it runs on. */
import path from "node:path";
import type { Accounts } from "@heddle/models/accounts";
import type { ConfigSource, Host, HostSkills } from "@heddle/server";
import type { ParsedArgs } from "../args.ts";
import { parseOverrides } from "../config/check-config.ts";
import { hooksOf, mcpServersOf } from "../config/extensions.ts";
import type { OnSecrets } from "../config/logins.ts";
import { openOwnAccounts } from "../config/open-accounts.ts";
import { loadConfig } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { effectiveConfig } from "../config/settings.ts";
import { skillChoices } from "../config/skill-choices.ts";
import { configSource } from "./config-source.ts";

export interface OpenHostOptions {
  readonly args: ParsedArgs;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** File, profile and command line as one. */
  readonly config: ConfigFile;
  /** Private sockets of this server; whoever opens one is the owner, so they do not exist for what it runs. */
  readonly sockets: readonly string[];
  /** The file says something else from now on. */
  readonly onConfigChange: (file: ConfigFile) => void;
  readonly onSecrets: OnSecrets;
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
  let disabled = config.disabled_skills ?? [];
  const source = configSource({
    env,
    loading,
    overrides: args.values("config"),
    onChange(file) {
      disabled = file.disabled_skills ?? [];
      options.onConfigChange(file);
    },
  });
  return {
    env,
    masked: options.sockets,
    skills: hostSkills(source, () => disabled),
    writeRoots: roots.length === 0 ? undefined : roots,
    config: source,
    hooks: hooksOf(config),
    mcpServers: await mcpServersOf(config, env),
    async readMcpServers() {
      const { config: overrides } = parseOverrides(args.values("config"), loading);
      const { config: file } = await loadConfig(env, loading);
      return mcpServersOf(effectiveConfig({ file, overrides }, loading.profile), env);
    },
    accounts: () => (opened ??= openOwnAccounts(env, options)),
    async [Symbol.asyncDispose]() {
      await (await opened?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}

function hostSkills(source: ConfigSource, disabled: () => readonly string[]): HostSkills {
  let extraRoots: readonly string[] = [];
  return {
    ...skillChoices(disabled, () => extraRoots),
    setExtraRoots(roots) {
      extraRoots = roots;
    },
    async setEnabled(skill, isEnabled) {
      const others = disabled().filter((name) => name !== skill);
      const off = isEnabled ? others : [...others, skill];
      const value = off.length === 0 ? null : off;
      await source.write([{ key: ["disabled_skills"], value, isJoined: false }], undefined);
    },
  };
}
