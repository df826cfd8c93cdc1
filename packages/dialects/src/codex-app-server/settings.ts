/** Sandbox modes and approval policies, in both directions. */
import { z } from "zod";
import type { ApprovalPolicy, SandboxMode, TurnSettings } from "@heddle/protocol";
import type { CodexSandboxPolicy } from "./shapes.ts";

export const SandboxModeParam = z.enum(["read-only", "workspace-write", "danger-full-access"]);

/** Profiles that exist everywhere, by the mode they come to. */
export const PROFILES = {
  "read-only": ":read-only",
  "workspace-write": ":workspace",
  "danger-full-access": ":danger-full-access",
} as const;

/** undefined: there is no profile of this name. */
export function sandboxOfProfile(name: string): SandboxChoice | undefined {
  const mode = SandboxModeParam.options.find((candidate) => PROFILES[candidate] === name);
  return mode === undefined ? undefined : { sandboxMode: mode, networkAccess: false, writableRoots: [] };
}

/** The original's fourth word takes an object; Heddle asks whenever that form could have asked. */
export const ApprovalPolicyParam = z.union([
  z.enum(["untrusted", "on-request", "granular", "never"]),
  z.object({ granular: z.record(z.string(), z.unknown()) }),
]);
export type ApprovalPolicyParam = z.infer<typeof ApprovalPolicyParam>;

export const SandboxPolicyParam = z.discriminatedUnion("type", [
  z.object({ type: z.literal("dangerFullAccess") }),
  z.object({ type: z.literal("readOnly"), networkAccess: z.boolean().optional() }),
  z.object({
    type: z.literal("workspaceWrite"),
    writableRoots: z.array(z.string()).optional(),
    networkAccess: z.boolean().optional(),
  }),
  z.object({ type: z.literal("externalSandbox"), networkAccess: z.unknown() }),
]);
export type SandboxPolicyParam = z.infer<typeof SandboxPolicyParam>;

/** Its settings override those of the request. */
export const CollaborationModeParam = z.object({
  mode: z.enum(["plan", "default"]),
  settings: z.object({
    model: z.string(),
    reasoning_effort: z.string().nullish(),
    developer_instructions: z.string().nullish(),
  }),
});

/** The mode of a thread as the original sends it. */
export function collaborationMode(turn: TurnSettings): Readonly<Record<string, unknown>> {
  const { mode, model, effort = null, modeInstructions = null } = turn;
  const settings = { model, reasoning_effort: effort, developer_instructions: modeInstructions };
  return { mode: mode ?? "default", settings };
}

export function approvalPolicyFrom(param: ApprovalPolicyParam): ApprovalPolicy {
  return typeof param === "string" && param !== "granular" ? param : "on-request";
}

export interface SandboxChoice {
  readonly sandboxMode: SandboxMode;
  readonly networkAccess?: boolean;
  /** Of the configuration; clients of Codex know no such list. */
  readonly networkHosts?: readonly string[] | undefined;
  readonly writableRoots?: readonly string[];
}

/** undefined: Heddle cannot vouch for the sandbox of another program. */
export function sandboxFrom(param: SandboxPolicyParam): SandboxChoice | undefined {
  switch (param.type) {
    case "dangerFullAccess":
      return { sandboxMode: "danger-full-access" };
    case "readOnly":
      return {
        sandboxMode: "read-only",
        ...(param.networkAccess === undefined ? {} : { networkAccess: param.networkAccess }),
      };
    case "workspaceWrite":
      return {
        sandboxMode: "workspace-write",
        ...(param.networkAccess === undefined ? {} : { networkAccess: param.networkAccess }),
        ...(param.writableRoots === undefined ? {} : { writableRoots: param.writableRoots }),
      };
    case "externalSandbox":
      return undefined;
  }
}

export function sandboxPolicy(settings: TurnSettings): CodexSandboxPolicy {
  const { sandboxMode, networkAccess, writableRoots } = settings;
  if (sandboxMode === "danger-full-access") return { type: "dangerFullAccess" };
  if (sandboxMode === "read-only") return { type: "readOnly", networkAccess };
  return {
    type: "workspaceWrite",
    writableRoots,
    networkAccess,
    excludeTmpdirEnvVar: false,
    excludeSlashTmp: false,
  };
}

/** What thread/start, thread/resume and thread/fork answer in addition to the thread. */
export function threadSettings(
  settings: TurnSettings,
  workspace: string,
  {
    isSandboxGiven = false,
    guides = [],
  }: { readonly isSandboxGiven?: boolean; readonly guides?: readonly string[] } = {},
): Readonly<Record<string, unknown>> {
  return {
    model: settings.model,
    modelProvider: settings.provider,
    serviceTier: settings.serviceTier ?? null,
    disabledPluginIds: settings.disabledPlugins ?? [],
    cwd: workspace,
    runtimeWorkspaceRoots: [workspace],
    instructionSources: guides,
    approvalPolicy: settings.approvalPolicy,
    approvalsReviewer: "user",
    sandbox: sandboxPolicy(settings),
    // A profile is named where none of its parts was given on its own.
    activePermissionProfile: isSandboxGiven ? null : { id: PROFILES[settings.sandboxMode], extends: null },
    reasoningEffort: settings.effort ?? null,
    multiAgentMode: "explicitRequestOnly",
  };
}
