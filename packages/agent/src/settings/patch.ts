/** What can be said about the next turns of a thread, typed. */
import type { ApprovalPolicy, SandboxMode } from "@heddle/protocol";

/** Only what is said; everything else stays as it is. */
export interface SettingsPatch {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  readonly effort?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  readonly networkAccess?: boolean | undefined;
  readonly writableRoots?: readonly string[] | undefined;
  readonly approvalPolicy?: ApprovalPolicy | undefined;
  readonly mode?: "plan" | "default" | undefined;
  readonly contextTokens?: number | undefined;
  readonly compactAtTokens?: number | undefined;
  readonly asksUser?: boolean | undefined;
}

export type SettingKey = keyof SettingsPatch;

/** Kept from turn to turn; the rest is of the configuration, or of the turn alone. */
export const KEPT_KEYS = [
  "provider",
  "model",
  "effort",
  "sandboxMode",
  "networkAccess",
  "writableRoots",
  "approvalPolicy",
  "mode",
] as const satisfies readonly SettingKey[];

export const SETTING_KEYS = [
  ...KEPT_KEYS,
  "contextTokens",
  "compactAtTokens",
  "asksUser",
] as const satisfies readonly SettingKey[];

/** A model is of its provider, a sandbox mode brings its own network and folders. */
const COMPANIONS: Partial<Record<SettingKey, readonly SettingKey[]>> = {
  model: ["provider"],
  sandboxMode: ["networkAccess", "writableRoots"],
};

export function companionsOf(key: SettingKey): readonly SettingKey[] {
  return COMPANIONS[key] ?? [];
}

/** The keys with what goes with them. */
export function withCompanions(keys: readonly SettingKey[]): readonly SettingKey[] {
  return [...new Set(keys.flatMap((key) => [key, ...companionsOf(key)]))];
}
