/** Settings as chat clients send them, and as the engine takes them. */
import { z } from "zod";
import { ENVELOPE_EXAMPLES, type ApprovalPolicy, type SandboxMode } from "@heddle/protocol";

export const ChatEffort = z.enum(["auto", "none", "minimal", "low", "medium", "high", "xhigh", "max"]);
export const ChatApprovalPolicy = z.enum(["never", "on-request", "untrusted", "always"]);
const ChatSandbox = z.enum(["read-only", "workspace-write", "danger-full-access"]);

const ModeObject = z.object({
  mode: z.string().min(1).max(64),
  settings: z.record(z.string(), z.unknown()).optional(),
});
/** Older clients send the mode as a word. */
export const CollaborationMode = z.union([ModeObject, z.string().min(1).max(64)]);
export type CollaborationMode = z.infer<typeof CollaborationMode>;

const path = z.string().min(1).max(4096);
const text = z.string().min(1).max(256);

export const ChatSettings = z.looseObject({
  model: text.optional().meta({ description: "A model, or provider:model" }),
  effort: ChatEffort.optional(),
  approval_policy: ChatApprovalPolicy.optional(),
  runner: text.optional().meta({ description: "Who carries out the turns: embedded, or an agent program" }),
  sandbox: ChatSandbox.optional(),
  envelope: text.meta(ENVELOPE_EXAMPLES).optional(),
  collaboration_mode: CollaborationMode.optional(),
  attachments: z.object({ folder: path.optional(), folders: z.array(path).max(64).optional() }).nullish(),
});
export type ChatSettings = z.infer<typeof ChatSettings>;

/** Null takes a key out. */
export const ChatSettingsChange = z.looseObject(
  Object.fromEntries(Object.entries(ChatSettings.shape).map(([key, value]) => [key, z.nullable(value)])) as {
    [Key in keyof typeof ChatSettings.shape]: z.ZodNullable<(typeof ChatSettings.shape)[Key]>;
  },
);

/** What settings say, as the engine takes it. */
export interface ChatPatch {
  readonly runner: string | undefined;
  readonly model: string | undefined;
  readonly provider: string | undefined;
  readonly effort: string | undefined;
  readonly approvalPolicy: ApprovalPolicy | undefined;
  readonly sandboxMode: SandboxMode | undefined;
  readonly mode: "plan" | "default" | undefined;
}

export function chatPatch(settings: ChatSettings): ChatPatch {
  const { provider, model } = splitModel(settings.model);
  const mode = modeOf(settings.collaboration_mode);
  return {
    runner: settings.runner,
    provider,
    model,
    effort: settings.effort === "auto" ? undefined : settings.effort,
    approvalPolicy: approvalPolicy(settings.approval_policy),
    sandboxMode: settings.sandbox,
    mode: mode === undefined ? undefined : mode === "plan" ? "plan" : "default",
  };
}

function splitModel(selector: string | undefined): { provider: string | undefined; model: string | undefined } {
  // A name may hold colons of its own (`llama3:8b`): a provider is a plain word before the first.
  const [, provider, model] = /^([a-z][a-z0-9_-]*):(.+)$/i.exec(selector ?? "") ?? [];
  const isProvider = provider !== undefined && model !== undefined && !/^\d+(\.\d+)?b$/i.test(model);
  return isProvider ? { provider, model } : { provider: undefined, model: selector };
}

/** `always` asks before everything that is not known to be harmless; so does `untrusted`. */
function approvalPolicy(word: z.infer<typeof ChatApprovalPolicy> | undefined): ApprovalPolicy | undefined {
  return word === "always" ? "untrusted" : word;
}

function modeOf(mode: CollaborationMode | undefined): string | undefined {
  return typeof mode === "string" ? mode : mode?.mode;
}

export const COLLABORATION_MODES = [
  { name: "Plan", mode: "plan", description: "Reads and plans, changes nothing" },
  { name: "Code", mode: "code", description: "Works in the folder of the chat" },
] as const;
