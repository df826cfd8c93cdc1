/** The keys under which the journal keeps settings of the next turns of a thread. */
import { isSandboxMode, type ApprovalPolicy } from "@heddle/protocol";
import { SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";

type Words = Readonly<Record<string, unknown>>;

interface Word<K extends SettingKey> {
  readonly word: string;
  /** undefined: a value of another door that means nothing here. */
  readonly read: (value: unknown) => SettingsPatch[K];
}

const WORDS: { readonly [K in SettingKey]-?: Word<K> } = {
  provider: { word: "model_provider", read: textOf },
  model: { word: "model", read: textOf },
  effort: { word: "effort", read: (value) => (value === "auto" ? undefined : textOf(value)) },
  sandboxMode: { word: "sandbox", read: (value) => (isText(value) && isSandboxMode(value) ? value : undefined) },
  networkAccess: { word: "network_access", read: flagOf },
  writableRoots: {
    word: "writable_roots",
    read: (value) => (Array.isArray(value) && value.every(isText) ? value : undefined),
  },
  approvalPolicy: { word: "approval_policy", read: policyOf },
  mode: { word: "collaboration_mode", read: modeOf },
  contextTokens: { word: "context_tokens", read: countOf },
  compactAtTokens: { word: "compact_at_tokens", read: countOf },
  asksUser: { word: "ask_user", read: flagOf },
};

export function patchOf(words: Words): SettingsPatch {
  return Object.fromEntries(
    SETTING_KEYS.map((key) => [key, WORDS[key].read(words[WORDS[key].word])]).filter(
      ([, value]) => value !== undefined,
    ),
  );
}

export function wordsOf(patch: SettingsPatch): Words {
  return Object.fromEntries(
    SETTING_KEYS.filter((key) => patch[key] !== undefined).map((key) => [
      WORDS[key].word,
      key === "mode" ? { mode: patch.mode } : patch[key],
    ]),
  );
}

export function wordOf(key: SettingKey): string {
  return WORDS[key].word;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
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
