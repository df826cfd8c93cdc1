/** What the tools for child threads need of the engine, which runs them. */
import type { ChildState, SandboxMode } from "@heddle/protocol";
import type { Offer, ToolFamily } from "./registry.ts";
import type { CallContext, Tool } from "./tool.ts";

export interface ChildRequest {
  readonly prompt: string;
  readonly model?: string | undefined;
  readonly effort?: string | undefined;
  /** Absent: the parent's. What is wider than the parent's is narrowed to it. */
  readonly sandboxMode?: SandboxMode | undefined;
  /** The name of an envelope, likewise; counts more than a sandbox mode. */
  readonly envelope?: string | undefined;
}

/** The child threads of the thread that a turn runs in. Every refusal is typed. */
export interface ChildThreads {
  /** Of their parent. */
  readonly threadId: string;
  /** Resolves when the child's first turn is admitted. `narrowed`: what it asked for and did not get. */
  start(request: ChildRequest, call: CallContext): Promise<ChildState & { readonly narrowed?: string | undefined }>;
  /** Adds input to the child's running turn, or starts its next one; `isUrgent` stops what it does before. */
  send(message: ChildMessage): Promise<ChildState & { readonly turnId: string }>;
  /** Until one of them has ended its turn, or the time is over. */
  wait(threadIds: readonly string[], limit: ChildWait): Promise<readonly ChildState[]>;
  /** Stops what it does and archives it; returns how it was before. */
  close(threadId: string): Promise<ChildState>;
}

export interface ChildMessage {
  readonly threadId: string;
  readonly text: string;
  readonly isUrgent: boolean;
}

export interface ChildWait {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export const CHILD_TOOLS = ["spawn_agent", "send_input", "wait_agent", "close_agent"] as const;
export type ChildTool = (typeof CHILD_TOOLS)[number];

/** The tools of a thread that may start others, by the names that a family of models knows. */
export type ChildToolset = (family: ToolFamily) => readonly ChildToolEntry[];

export interface ChildToolEntry {
  readonly name: ChildTool;
  readonly offeredAs: string;
  readonly offer: Offer;
  load(): Promise<Tool>;
}
