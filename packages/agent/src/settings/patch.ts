/** Settings of the next turns of a thread, typed. */
import type {
  ApprovalPolicy,
  BroughtServer,
  EnvironmentPolicy,
  SandboxMode,
  SearchKind,
  SearchOptions,
  TurnSettings,
} from "@heddle/protocol";

/** Instructions for the model, and the form of its answers. */
export const INSTRUCTION_KEYS = [
  "baseInstructions",
  "developerInstructions",
  "modeInstructions",
  "verbosity",
  "summary",
  "serviceTier",
  "personality",
] as const satisfies readonly (keyof TurnSettings)[];

/** Which guides are read. */
const GUIDE_KEYS = ["guideNames", "guideBytes"] as const satisfies readonly (keyof TurnSettings)[];

type Instructions = {
  readonly [K in (typeof INSTRUCTION_KEYS | typeof GUIDE_KEYS)[number]]?: TurnSettings[K] | undefined;
};

/** Absent keys stay as they are. */
export interface SettingsPatch extends Instructions {
  /** Who carries out the turns. */
  readonly runner?: string | undefined;
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  readonly effort?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  /** By its name; a sandbox mode is one too. */
  readonly envelope?: string | undefined;
  /** The widest envelope of the thread. */
  readonly ceiling?: string | undefined;
  readonly networkAccess?: boolean | undefined;
  /** Narrows `networkAccess` of the same or an earlier layer. */
  readonly networkHosts?: readonly string[] | undefined;
  readonly writableRoots?: readonly string[] | undefined;
  readonly approvalPolicy?: ApprovalPolicy | undefined;
  readonly mode?: "plan" | "default" | undefined;
  readonly contextTokens?: number | undefined;
  readonly compactAtTokens?: number | undefined;
  readonly asksUser?: boolean | undefined;
  readonly mcpServers?: readonly BroughtServer[] | undefined;
  readonly disabledPlugins?: readonly string[] | undefined;
  /** Joined with what lies below it, key by key. */
  readonly environment?: EnvironmentPolicy | undefined;
  readonly webSearch?: SearchKind | "disabled" | undefined;
  /** By older keys, which count where `web_search` says nothing. */
  readonly impliedSearch?: SearchKind | undefined;
  readonly searchOptions?: SearchOptions | undefined;
}

export type SettingKey = keyof SettingsPatch;

/** Kept from turn to turn; the others belong to the configuration, or to one turn. */
export const KEPT_KEYS = [
  "runner",
  "provider",
  "model",
  "effort",
  "sandboxMode",
  "envelope",
  "networkAccess",
  "networkHosts",
  "writableRoots",
  "approvalPolicy",
  "mode",
  "disabledPlugins",
  ...INSTRUCTION_KEYS,
] as const satisfies readonly SettingKey[];

export const SETTING_KEYS = [
  ...KEPT_KEYS,
  "ceiling",
  "contextTokens",
  "compactAtTokens",
  "asksUser",
  ...GUIDE_KEYS,
  "mcpServers",
  "environment",
  "webSearch",
  "impliedSearch",
  "searchOptions",
] as const satisfies readonly SettingKey[];

/** A model belongs to its provider; a sandbox mode sets its own network access and folders, and is an envelope itself; a mode sets its
 * instructions. */
const COMPANIONS: Partial<Record<SettingKey, readonly SettingKey[]>> = {
  model: ["provider"],
  sandboxMode: ["networkAccess", "networkHosts", "writableRoots", "envelope"],
  mode: ["modeInstructions"],
};

/** Keys that put the earlier values of their companions out of force. */
export const LEADING_KEYS = ["sandboxMode", "mode"] as const satisfies readonly SettingKey[];

export function companionsOf(key: SettingKey): readonly SettingKey[] {
  return COMPANIONS[key] ?? [];
}

export function withCompanions(keys: readonly SettingKey[]): readonly SettingKey[] {
  return [...new Set(keys.flatMap((key) => [key, ...companionsOf(key)]))];
}
