/** What every server serves with: the host it lends to clients, the engine, and the settings that the configuration comes to. */
import type { Heddle } from "@heddle/agent";
import { createRedactor } from "@heddle/journal";
import type { Host, SettingsSource } from "@heddle/server";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import type { ConfigFile } from "../config/schema.ts";
import { openEngine, type ReadConfig } from "./engine.ts";
import { openHost } from "./host.ts";
import { settingsSource } from "./settings-source.ts";

export interface Serving {
  readonly host: Host;
  readonly heddle: Heddle;
  readonly settings: SettingsSource;
}

export interface ServingOptions extends Pick<CommandContext, "env" | "cwd">, Pick<ReadConfig, "file" | "config"> {
  readonly args: ParsedArgs;
  readonly home: string;
  /** Sockets of the server itself, which no command of a client may see. */
  readonly sockets: readonly string[];
}

/** Everything that is opened is closed with `ends`. */
export async function openServing(ends: AsyncDisposableStack, options: ServingOptions): Promise<Serving> {
  const { args, env, cwd, config, home, sockets } = options;
  // Clients may change the file; what the next turn runs with is what it says then.
  let file = options.file;
  // One for both: what a client stores as a key is never stored as anything else, from that moment on.
  const redactor = createRedactor();
  const onConfigChange = (changed: ConfigFile): void => void (file = changed);
  const host = ends.use(await openHost({ args, env, cwd, config, sockets, onConfigChange, onSecrets: redactor.learn }));
  const heddle = ends.use(await openEngine(home, config, env, { ...host, redactor }));
  const settings = settingsSource({
    get file() {
      return file;
    },
    overrides: args.values("config"),
    profile: args.value("profile"),
    env,
  });
  return { host, heddle, settings };
}
