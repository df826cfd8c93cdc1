/** The keys under which the journal keeps settings of the next turns of a thread. */
import {
  EnvironmentPolicy,
  isSandboxMode,
  Personality,
  ReasoningSummary,
  SearchKind,
  SearchOptions,
  Verbosity,
  type ApprovalPolicy,
  type BroughtServer,
} from "@heddle/protocol";
import { SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";

type StoredSettings = Readonly<Record<string, unknown>>;

interface StoredKey<K extends SettingKey> {
  readonly name: string;
  /** undefined: a value of another door that means nothing here. */
  readonly read: (value: unknown) => SettingsPatch[K];
}

const KEYS: { readonly [K in SettingKey]-?: StoredKey<K> } = {
  runner: { name: "runner", read: textOf },
  provider: { name: "model_provider", read: textOf },
  model: { name: "model", read: textOf },
  effort: { name: "effort", read: (value) => (value === "auto" ? undefined : textOf(value)) },
  sandboxMode: { name: "sandbox", read: (value) => (isText(value) && isSandboxMode(value) ? value : undefined) },
  envelope: { name: "envelope", read: textOf },
  ceiling: { name: "ceiling", read: textOf },
  networkAccess: { name: "network_access", read: flagOf },
  networkHosts: { name: "network_hosts", read: hostsOf },
  writableRoots: { name: "writable_roots", read: textsOf },
  approvalPolicy: { name: "approval_policy", read: policyOf },
  mode: { name: "collaboration_mode", read: modeOf },
  contextTokens: { name: "context_tokens", read: countOf },
  compactAtTokens: { name: "compact_at_tokens", read: countOf },
  disabledPlugins: { name: "disabled_plugins", read: textsOf },
  asksUser: { name: "ask_user", read: flagOf },
  baseInstructions: { name: "instructions", read: textOf },
  developerInstructions: { name: "developer_instructions", read: textOf },
  modeInstructions: { name: "mode_instructions", read: textOf },
  verbosity: { name: "model_verbosity", read: oneOf(Verbosity) },
  summary: { name: "model_reasoning_summary", read: oneOf(ReasoningSummary) },
  serviceTier: { name: "service_tier", read: textOf },
  personality: { name: "personality", read: oneOf(Personality) },
  environment: { name: "shell_environment_policy", read: environmentOf },
  guideNames: { name: "project_doc_fallback_filenames", read: textsOf },
  guideBytes: { name: "project_doc_max_bytes", read: (value) => (value === 0 ? 0 : countOf(value)) },
  webSearch: { name: "web_search", read: (value) => (value === "disabled" ? value : SearchKind.safeParse(value).data) },
  impliedSearch: { name: "web_search_implied", read: oneOf(SearchKind) },
  searchOptions: { name: "web_search_options", read: oneOf(SearchOptions) },
  mcpServers: {
    name: "mcp_servers",
    read: (value) => (Array.isArray(value) && value.every(isNamed) ? value : undefined),
  },
};

export function patchOf(stored: StoredSettings): SettingsPatch {
  return Object.fromEntries(
    SETTING_KEYS.map((key) => [key, KEYS[key].read(stored[KEYS[key].name])]).filter(([, value]) => value !== undefined),
  );
}

export function storedForm(patch: SettingsPatch): StoredSettings {
  return Object.fromEntries(
    SETTING_KEYS.filter((key) => patch[key] !== undefined).map((key) => [
      KEYS[key].name,
      key === "mode" ? { mode: patch.mode } : patch[key],
    ]),
  );
}

export function storedKey(key: SettingKey): string {
  return KEYS[key].name;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isNamed(value: unknown): value is BroughtServer {
  return typeof value === "object" && value !== null && "name" in value && isText(value.name);
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

function textsOf(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every(isText) ? value : undefined;
}

/** An older list that no longer reads as one leaves the network off. */
function hostsOf(value: unknown): string[] | undefined {
  const hosts = textsOf(value);
  return hosts === undefined || hosts.length === 0 ? undefined : hosts;
}

function oneOf<T>(schema: { safeParse(value: unknown): { data?: T } }): (value: unknown) => T | undefined {
  return (value) => schema.safeParse(value).data;
}

/** A secret was not stored, and what stands in its place is not it. */
function environmentOf(value: unknown): EnvironmentPolicy | undefined {
  const policy = oneOf(EnvironmentPolicy)(value);
  if (policy?.set === undefined) return policy;
  const kept = Object.entries(policy.set).filter(([, text]) => !text.includes("[redacted:"));
  return { ...policy, set: Object.fromEntries(kept) };
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** `always` of chats asks like `untrusted`. */
function policyOf(value: unknown): ApprovalPolicy | undefined {
  if (value === "always") return "untrusted";
  return value === "never" || value === "on-request" || value === "untrusted" ? value : undefined;
}

function modeOf(value: unknown): SettingsPatch["mode"] {
  const name = typeof value === "object" && value !== null && "mode" in value ? value.mode : value;
  if (!isText(name)) return undefined;
  return name === "plan" ? "plan" : "default";
}
