/** What a server lends its clients of the machine it runs on. */
import type { Accounts } from "@heddle/models/accounts";
import type { ConfigSource, Host, HostSkills } from "@heddle/server";
import { readConfiguration, type Configuration } from "../config/layers.ts";
import { codexLogin } from "../settings/codex-login.ts";
import { hooksOf, mcpServersOf } from "../settings/extensions.ts";
import type { OnSecrets } from "../settings/logins.ts";
import { openOwnAccounts } from "../store/open-accounts.ts";
import type { ConfigFile } from "../config/schema.ts";
import { skillChoices } from "../settings/extensions.ts";
import { configSource } from "./config-source.ts";

export interface OpenHostOptions {
  readonly configuration: Configuration;
  readonly env: NodeJS.ProcessEnv;
  /** Private sockets of this server; opening one makes the owner, so they are hidden from what it runs. */
  readonly sockets: readonly string[];
  readonly writeRoots: readonly string[] | undefined;
  /** The file says something else from now on. */
  readonly onConfigChange: (file: ConfigFile) => void;
  readonly onSecrets: OnSecrets;
}

/** Those that need no word of the configuration to be asked with OpenAI's key or login. */
const OPENAI_PROVIDERS: ReadonlySet<string> = new Set(["openai", "openai-codex"]);

export async function openHost(options: OpenHostOptions): Promise<Host & AsyncDisposable> {
  const { env, writeRoots } = options;
  const { choices, config, codexHome } = options.configuration;
  let opened: Promise<Accounts> | undefined;
  let disabled = config.disabled_skills ?? [];
  const source = configSource({
    env,
    choices,
    onChange(file) {
      disabled = file.disabled_skills ?? [];
      options.onConfigChange(file);
    },
  });
  return {
    env,
    masked: options.sockets,
    codexHome,
    runners: config.runners,
    skills: hostSkills(source, () => disabled),
    writeRoots,
    config: source,
    hooks: hooksOf(config),
    mcpServers: await mcpServersOf(config, env),
    readMcpServers: async () => mcpServersOf((await readConfiguration(choices, env)).config, env),
    async openAiAuth(provider) {
      const { model_providers: tables } = (await readConfiguration(choices, env)).config;
      const isRequired = OPENAI_PROVIDERS.has(provider) || tables?.[provider]?.requires_openai_auth === true;
      return { isRequired, hasCodexKey: (await codexLogin(env)).kind === "key" };
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
