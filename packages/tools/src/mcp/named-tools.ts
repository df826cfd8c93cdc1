/**
 * What the rest of Heddle knows of MCP servers, without what it takes to talk to one. The tools themselves are only for
 * dispatch: `toolsOf` is not exported from the package.
 */
import type { McpState } from "@heddle/protocol";
import type { ProtectedPathViolation } from "../sandbox/sandbox.ts";
import type { Tool } from "../calls/tool.ts";

export type McpReport =
  | {
      readonly kind: "listed";
      readonly server: string;
      readonly transport: "stdio" | "http";
      readonly hasNetwork: boolean;
      readonly protocolVersion: string;
      readonly tools: readonly { readonly tool: string; readonly offeredAs: string; readonly definition: string }[];
      readonly changed: readonly string[];
    }
  | { readonly kind: "failed"; readonly server: string; readonly message: string; readonly isRequired: boolean }
  | { readonly kind: "leftOut"; readonly message: string };

export interface McpServers {
  /** Ahead of the first turn, which takes over what comes of it. Resolves to why required servers are not there. */
  startAhead(): Promise<readonly string[]>;
  /** Of servers that were started. */
  readonly states: readonly McpState[];
  settle(signal: AbortSignal, options: { readonly isNewTurn: boolean }): Promise<readonly McpReport[]>;
  /** Some are processes of this host, which keep running between turns. */
  readonly hasProcesses: boolean;
  /** Protected paths touched since the last sweep of their own sandboxes. */
  sweep(): Promise<readonly ProtectedPathViolation[]>;
  /** Ends every server; what their own sandboxes found touched. */
  close(): Promise<readonly ProtectedPathViolation[]>;
}

export interface NamedTool {
  readonly offeredAs: string;
  readonly tool: Tool;
}

const offers = new WeakMap<McpServers, () => readonly NamedTool[]>();

/** For the servers alone. */
export function offerTools(servers: McpServers, tools: () => readonly NamedTool[]): void {
  offers.set(servers, tools);
}

/** For the registry alone. */
export function toolsOf(servers: McpServers): readonly NamedTool[] {
  return offers.get(servers)?.() ?? [];
}
