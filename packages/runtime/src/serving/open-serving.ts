/**
 * An engine opened from a configuration, with what every server needs beside it: the host it lends to clients, and the
 * settings that the configuration comes to.
 */
import type { Heddle, MemberOptions } from "@heddle/agent";
import { createRedactor } from "@heddle/journal";
import type { Host, SettingsSource } from "@heddle/server";
import type { TicketQueue } from "@heddle/tasks";
import type { Configuration } from "../config/layers.ts";
import type { ConfigFile } from "../config/schema.ts";
import { storeAddress } from "../config/store-address.ts";
import { openTickets } from "../store/tickets.ts";
import { settingsSource } from "../settings/settings-source.ts";
import { traceTurns } from "../telemetry/index.ts";
import { openEngine } from "./engine.ts";
import { openHost } from "./host.ts";

export interface Serving {
  readonly host: Host;
  readonly heddle: Heddle;
  readonly settings: SettingsSource;
  /** Of a store that machines share; absent: the store of this home is its own queue. */
  readonly tickets: TicketQueue | undefined;
}

export interface ServingOptions {
  readonly configuration: Configuration;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  /** Sockets of the server itself, which no command of a client may see. */
  readonly sockets?: readonly string[];
  /** Where clients may write besides the workspaces of threads, absolute; absent: the folder it is started in. */
  readonly writeRoots?: readonly string[] | undefined;
  /** Policy answers questions: no client can be asked. */
  readonly isUnattended?: boolean | undefined;
  /** It joins the store as a worker of a team. */
  readonly member?: MemberOptions | undefined;
  readonly log: (line: string) => void;
}

/** Everything that is opened is closed with `ends`. */
export async function openServing(ends: AsyncDisposableStack, options: ServingOptions): Promise<Serving> {
  const { configuration, env, home, sockets = [], writeRoots, isUnattended, member, log } = options;
  const { choices, config, codexHome } = configuration;
  // Clients may change the file; what the next turn runs with is what it says then.
  let { file } = configuration;
  // One for both: what a client stores as a key is never stored as anything else, from that moment on.
  const redactor = createRedactor();
  const onConfigChange = (changed: ConfigFile): void => void (file = changed);
  const host = ends.use(
    await openHost({ configuration, env, sockets, writeRoots, onConfigChange, onSecrets: redactor.learn }),
  );
  const { masked, skills } = host;
  const tickets = await openTickets(storeAddress(config, env), { log, isUpkeeper: true });
  if (tickets !== undefined) ends.use(tickets);
  const engine = { home, codexHome, config, env, masked, skills, redactor, isUnattended, member, tickets, log };
  const heddle = ends.use(await openEngine(engine));
  await traceTurns(ends, { journal: heddle.journal, config, env, log });
  const settings = settingsSource({
    get file() {
      return file;
    },
    overrides: configuration.overrides,
    profile: choices.profile,
    env,
  });
  return { host, heddle, settings, tickets };
}
