/**
 * What an envelope says of itself, before it is known where it is entered: the built-in ones, and those of users and
 * projects, which are written as YAML.
 */
import type { ApprovalPolicy, Effect, EnvelopeLimits, HopEdge, Network, SandboxMode } from "@heddle/protocol";

export interface EnvelopeSpec {
  readonly id: string;
  readonly description: string;
  /** Exact names; `mcp.*` is every configured MCP server, `mcp.<server>.*` one of them, `client.*` what a client brings. */
  readonly tools: readonly string[];
  readonly effects: readonly Effect[];
  /** Where a user can be asked, a change can be proposed; nothing is written without an answer. */
  readonly whenAsked?: { readonly tools: readonly string[]; readonly effects: readonly Effect[] } | undefined;
  /** Effects of the tools that the owner, a client or a provider adds are added to the ceiling. */
  readonly addsEffects?: true | undefined;
  /** Folders: absolute, `~/…`, or below the workspace (`.` is the workspace itself); `system` is what programs need; absent: everything. */
  readonly read?: readonly string[] | undefined;
  /** As `read`; `$writableRoots` are the folders of the settings, and `name?` counts only where it exists. */
  readonly write: readonly string[];
  /** As `read`, besides what is masked in every envelope. */
  readonly masked?: readonly string[] | undefined;
  /** Absent: as the settings say. */
  readonly network?: Network | undefined;
  readonly sandbox: "required" | "off";
  /** Absent: as the settings say; otherwise the stricter of the two. */
  readonly approval?: ApprovalPolicy | undefined;
  readonly exits: readonly HopEdge[];
  readonly limits?: EnvelopeLimits | undefined;
  readonly outcome?: Readonly<Record<string, unknown>> | undefined;
  readonly manifest?: true | undefined;
}

export const WORKSPACE_ROOT = ".";
/** See `systemFolders`. */
export const SYSTEM_ROOTS = "system";
export const SETTINGS_ROOTS = "$writableRoots";

/** The sandbox mode that says the same to clients which know nothing else. */
export function sandboxModeOf({ sandbox, write }: Pick<EnvelopeSpec, "sandbox" | "write">): SandboxMode {
  if (sandbox === "off") return "danger-full-access";
  return write.length === 0 ? "read-only" : "workspace-write";
}
