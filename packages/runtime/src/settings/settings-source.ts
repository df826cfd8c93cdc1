/** What a client's wishes come to under the configuration of whoever started the server. */
import type { SettingsSource, Wishes } from "@heddle/server";
import { isUnheededKey } from "@heddle/dialects/codex-app-server";
import type { ApprovalPolicy, TurnSettings } from "@heddle/protocol";
import { parseOverrides } from "../config/check-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { effectiveConfig, type Layers } from "../config/layers.ts";
import { resolveSettings } from "./settings.ts";
import { standingOf } from "./workspace.ts";

export interface SourceOptions {
  readonly file: ConfigFile;
  /** `-c KEY=VALUE` of the command line. */
  readonly overrides: readonly string[];
  readonly profile: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

export function settingsSource(options: SourceOptions): SettingsSource {
  return { resolve: (wishes) => resolve(options, wishes) };
}

async function resolve({ file, overrides, profile, env }: SourceOptions, wishes: Wishes): Promise<TurnSettings> {
  const wished = [
    ...overridesOf(heeded(wishes.config ?? {})),
    ...(wishes.provider === undefined ? [] : [`model_provider=${JSON.stringify(wishes.provider)}`]),
    ...(wishes.effort === undefined ? [] : [`model_reasoning_effort=${JSON.stringify(wishes.effort)}`]),
  ];
  const own = parseOverrides(overrides).config;
  // However a client spells it: who is asked, and what is started for it, the owner alone says.
  const {
    model_providers: _providers,
    mcp_servers: _servers,
    ...asked
  } = parseOverrides([...overrides, ...wished]).config;
  const { model_providers, mcp_servers } = own;
  const owners = { ...(model_providers && { model_providers }), ...(mcp_servers && { mcp_servers }) };
  const layers: Layers = { file, overrides: { ...asked, ...owners } };
  const config = effectiveConfig(layers, profile);
  const { inherited } = wishes;
  // The thread's own choice stands against the server's, not against what a client asks for now.
  const isChosenNow = wishes.model !== undefined || wished.length > 0;
  const taken = inherited === undefined || inherited.provider === "scripted" || isChosenNow ? undefined : inherited;
  const asLayers: Layers = taken === undefined ? layers : { file: { ...file, ...layers.overrides }, overrides: {} };
  const choices = {
    model: wishes.model,
    profile,
    inherited: taken,
    addedRoots: [],
    mayLackKey: wishes.mayLackKey,
    sandboxMode: wishes.sandboxMode ?? inherited?.sandboxMode,
    isTrustedFolder: wishes.workspace !== undefined && (await standingOf(wishes.workspace, config.projects)).isTrusted,
  };
  const { settings } = await resolveSettings(asLayers, choices, env);
  const keepsWall = wishes.sandboxMode === undefined && inherited !== undefined;
  return {
    ...settings,
    ...ceilingOf(effectiveConfig({ file, overrides: own }, profile)),
    ...(keepsWall ? { networkAccess: inherited.networkAccess, writableRoots: inherited.writableRoots } : {}),
    ...peopleOf(config, wishes),
    approvalPolicy: wishes.approvalPolicy ?? inherited?.approvalPolicy ?? policyOf(config),
  };
}

/** The owner's word alone: what a client sends along cannot raise it. */
function ceilingOf({ sandbox_ceiling: ceiling }: ConfigFile): Pick<TurnSettings, "ceiling"> {
  return ceiling === undefined ? {} : { ceiling };
}

/** What there is because somebody watches the turns. */
function peopleOf(
  { ask_user: asksUser }: ConfigFile,
  { mode, inherited }: Wishes,
): Pick<TurnSettings, "mode" | "asksUser" | "hasClientTools"> {
  const isPlanned = (mode ?? inherited?.mode) === "plan";
  return {
    ...(isPlanned ? { mode: "plan" } : {}),
    ...(asksUser === true ? { asksUser } : {}),
    ...(inherited?.hasClientTools === true ? { hasClientTools: true } : {}),
  };
}

/** Clients can be asked, so that they are unless the owner says otherwise. */
function policyOf({ approval_policy: policy }: ConfigFile): ApprovalPolicy {
  return policy === undefined || policy === "on-failure" ? "on-request" : policy;
}

/** Which servers and providers there are was settled when this server started; its clients are told so. */
function heeded(config: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(config).filter(([key]) => !isUnheededKey(key)));
}

/** Nested or dotted keys as the words of `-c`; JSON of a plain value is TOML. */
function overridesOf(config: Readonly<Record<string, unknown>>, above = ""): readonly string[] {
  return Object.entries(config).flatMap(([key, value]) => {
    if (value === null || value === undefined) return [];
    // The outermost key may be dotted; those below are names as they are, such as folders.
    const name = above === "" || /^[\w-]+$/.test(key) ? `${above}${key}` : `${above}"${key}"`;
    if (typeof value !== "object" || Array.isArray(value)) return [`${name}=${JSON.stringify(value)}`];
    return overridesOf(Object.fromEntries(Object.entries(value)), `${name}.`);
  });
}
