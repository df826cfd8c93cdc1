/** The engine of a long-lived process, opened from its configuration. */
import { openHeddle, type Heddle, type MemberOptions } from "@heddle/agent";
import type { Redactor, TicketWriter } from "@heddle/journal";
import type { ProviderConfig } from "@heddle/models";
import { counted, isHeddleError } from "@heddle/protocol";
import type { Host } from "@heddle/server";
import type { ConfigFile } from "../config/schema.ts";
import { storeAddress } from "../config/store-address.ts";
import { backgroundOf, hooksOf, mcpServersOf } from "../settings/extensions.ts";
import { limitOptions } from "../settings/extensions.ts";
import { withLazyLogins, withLogin } from "../settings/logins.ts";
import { providerConfigs } from "../settings/settings.ts";

export interface EngineOptions extends Pick<Host, "masked" | "skills"> {
  readonly home: string;
  readonly codexHome: string | undefined;
  /** File, profile and overrides as one. */
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  /** Absent: clients can be asked. */
  readonly isUnattended?: boolean | undefined;
  readonly member?: MemberOptions | undefined;
  readonly tickets?: TicketWriter | undefined;
  readonly log: (line: string) => void;
}

/** What is masked for the commands of clients is masked for agents too. */
export async function openEngine(options: EngineOptions): Promise<Heddle> {
  const {
    home,
    codexHome,
    config,
    env,
    masked,
    skills,
    redactor,
    isUnattended = false,
    member,
    tickets,
    log,
  } = options;
  const heddle = await openHeddle({
    home,
    store: storeAddress(config, env),
    codexHome,
    providers: await providersOf(config, env, redactor),
    redactor,
    env,
    log,
    isUnattended,
    member,
    tickets,
    masked: masked ?? [],
    skills,
    mcpServers: await mcpServersOf(config, env),
    hooks: hooksOf(config),
    runners: config.runners,
    hasEvidenceTools: config.evidence_tools,
    background: backgroundOf(config),
    ...limitOptions(config),
    ...(config.approval_timeout_sec === undefined ? {} : { approvalTimeoutMs: config.approval_timeout_sec * 1000 }),
    ...(config.session_idle_sec === undefined ? {} : { sessionIdleMs: config.session_idle_sec * 1000 }),
    ...(config.client_tool_timeout_sec === undefined ? {} : { clientToolMs: config.client_tool_timeout_sec * 1000 }),
  });
  if (heddle.recoveredTurns > 0)
    log(
      `${counted(heddle.recoveredTurns, "turn")} of processes that have ended ${heddle.recoveredTurns === 1 ? "was" : "were"} closed`,
    );
  return heddle;
}

/** A server without a key still lists and reads; the first turn says what is missing, unless a client has logged in by then. */
async function providersOf(
  config: ConfigFile,
  env: NodeJS.ProcessEnv,
  { learn }: Redactor,
): Promise<readonly ProviderConfig[]> {
  const configs = providerConfigs(config, {}, env);
  try {
    return withLazyLogins(await withLogin(configs, config.model_provider ?? "openai", env, learn), env, learn);
  } catch (error) {
    if (isHeddleError(error) && error.code === "auth.missing") return withLazyLogins(configs, env, learn);
    throw error;
  }
}
