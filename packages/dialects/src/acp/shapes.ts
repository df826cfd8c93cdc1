/**
 * What the Agent Client Protocol, version 1, puts on the wire, as far as Heddle says it. Terminals of the client are never
 * used: commands run in Heddle's sandbox, and their output is content of their call.
 */
import type { ApprovalQuestion, Failure } from "@heddle/protocol";

export type AcpContent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mimeType: string; readonly data: string };

export type AcpToolContent =
  | { readonly type: "content"; readonly content: AcpContent }
  | { readonly type: "diff"; readonly path: string; readonly oldText: string | null; readonly newText: string }
  /** Only for clients that draw the output themselves, see `AcpClient.drawsTerminals`. */
  | { readonly type: "terminal"; readonly terminalId: string };

export type AcpToolKind =
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "execute"
  | "think"
  | "fetch"
  | "switch_mode"
  | "other";
export type AcpToolStatus = "pending" | "in_progress" | "completed" | "failed";

/** A call as it is first shown; an update has the keys that changed. */
export interface AcpToolCall {
  readonly toolCallId: string;
  readonly title: string;
  readonly kind: AcpToolKind;
  readonly status: AcpToolStatus;
  readonly content?: readonly AcpToolContent[];
  readonly locations?: readonly { readonly path: string; readonly line?: number }[];
  readonly rawInput?: unknown;
  readonly rawOutput?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

export interface AcpUpdate extends Readonly<Record<string, unknown>> {
  readonly sessionUpdate: string;
}

export type AcpStopReason = "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled";

/** Of one turn. Clients that know it count with it. */
export interface AcpUsage {
  readonly totalTokens: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedReadTokens: number;
  readonly cachedWriteTokens: number;
  readonly thoughtTokens: number;
}

/** How a turn ended, as the answer to its prompt. */
export type AcpEnd =
  | { readonly kind: "stopped"; readonly stopReason: AcpStopReason; readonly usage: AcpUsage }
  | { readonly kind: "failed"; readonly failure: Failure };

/** What the client said about itself. */
export interface AcpClient {
  readonly name: string;
  /** It draws the output of commands that it is sent in `_meta`, as several editors do. */
  readonly drawsTerminals: boolean;
  readonly showsNotices: boolean;
  readonly showsCompactions: boolean;
  /** It shows forms (`elicitation/create`). */
  readonly hasForms: boolean;
}

export interface AcpRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** What one stored event or one delta means for the client of a session. */
export type AcpOutgoing =
  | { readonly kind: "update"; readonly update: AcpUpdate }
  | {
      readonly kind: "ask";
      readonly approvalId: string;
      readonly question: ApprovalQuestion;
      readonly call: AcpToolCall;
    }
  | { readonly kind: "resolved"; readonly approvalId: string }
  /** The settings of the next turn may be others from here on. */
  | { readonly kind: "settings" }
  | { readonly kind: "began"; readonly turnId: string }
  | { readonly kind: "ended"; readonly turnId: string; readonly end: AcpEnd };
