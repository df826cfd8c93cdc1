/**
 * What `codex app-server` 0.166 puts on the wire, as far as Heddle says it. Fields that have no meaning here are present
 * and null, because clients read them; what Heddle adds stands beside them and is marked so.
 */
import type { ApprovalQuestion } from "@heddle/protocol";

export type RequestId = string | number;

export interface CodexNotification {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface CodexServerRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** What one stored event or one delta means for clients. */
export type Outgoing =
  /** `everyone`: also to clients that do not follow this thread. */
  | { readonly kind: "notify"; readonly to: "everyone" | "followers"; readonly notification: CodexNotification }
  /** May be left out when a reader is slow: the completed item has it all. */
  | { readonly kind: "delta"; readonly notification: CodexNotification }
  | {
      readonly kind: "ask";
      readonly approvalId: string;
      readonly question: ApprovalQuestion;
      readonly request: CodexServerRequest;
    }
  | { readonly kind: "resolved"; readonly approvalId: string }
  /** A tool of the clients is to be carried out; it is over with `called`. */
  | { readonly kind: "call"; readonly turnId: string; readonly itemId: string; readonly request: CodexServerRequest }
  | { readonly kind: "called"; readonly itemId: string };

export type WaitingFlag = "waitingOnApproval" | "waitingOnUserInput";

export type CodexThreadStatus =
  | { readonly type: "notLoaded" }
  | { readonly type: "idle" }
  | { readonly type: "systemError" }
  | { readonly type: "active"; readonly activeFlags: readonly WaitingFlag[] };

export type CodexErrorInfo =
  | "contextWindowExceeded"
  | "sessionBudgetExceeded"
  | "rateLimitExceeded"
  | "serverOverloaded"
  | "modelNotFound"
  | "internalServerError"
  | "unauthorized"
  | "badRequest"
  | "sandboxError"
  | "other"
  | { readonly httpConnectionFailed: { readonly httpStatusCode: number | null } }
  | { readonly responseStreamDisconnected: { readonly httpStatusCode: number | null } };

export interface CodexTurnError {
  readonly message: string;
  readonly codexErrorInfo: CodexErrorInfo;
  readonly additionalDetails: string | null;
  readonly misalignment: null;
  /** Heddle's own code. */
  readonly code: string;
}

/** All have `type`, `id`, `startedAtMs` and `completedAtMs`; the rest depends on the type. */
export interface CodexThreadItem {
  readonly type: string;
  readonly id: string;
  readonly startedAtMs: number | null;
  readonly completedAtMs: number | null;
  readonly [field: string]: unknown;
}

export interface CodexTurn {
  readonly id: string;
  readonly rootTurnId: string;
  readonly items: readonly CodexThreadItem[];
  readonly itemsView: "notLoaded" | "summary" | "full";
  readonly status: "inProgress" | "completed" | "interrupted" | "failed";
  readonly error: CodexTurnError | null;
  /** Seconds. */
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  readonly durationMs: number | null;
  /** Heddle's own, with the end of a turn: what its requests cost, where that is known. */
  readonly costUsd?: number;
}

export type CodexSandboxPolicy =
  | { readonly type: "dangerFullAccess" }
  | { readonly type: "readOnly"; readonly networkAccess: boolean }
  | {
      readonly type: "workspaceWrite";
      readonly writableRoots: readonly string[];
      readonly networkAccess: boolean;
      readonly excludeTmpdirEnvVar: boolean;
      readonly excludeSlashTmp: boolean;
    };

export interface CodexGitInfo {
  readonly sha: string | null;
  readonly branch: string | null;
  readonly originUrl: string | null;
}

export interface CodexThread {
  readonly id: string;
  readonly environments: readonly Readonly<Record<string, unknown>>[];
  readonly extra: null;
  readonly sessionId: string;
  readonly forkedFromId: string | null;
  readonly parentThreadId: null;
  readonly preview: string;
  readonly ephemeral: boolean;
  readonly section: null;
  readonly sectionEnteredAt: null;
  readonly projectId: null;
  readonly historyMode: "paginated";
  readonly modelProvider: string;
  readonly model: string | null;
  readonly reasoningEffort: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly recencyAt: number;
  readonly status: CodexThreadStatus;
  /** Heddle keeps no rollout files. */
  readonly path: null;
  readonly cwd: string;
  readonly cliVersion: string;
  readonly originator: string;
  readonly source: "vscode" | "exec";
  readonly canAcceptDirectInput: boolean;
  readonly threadSource: null;
  readonly agentNickname: null;
  readonly agentRole: null;
  readonly gitInfo: CodexGitInfo | null;
  readonly name: string | null;
  readonly daybreakEnabled: null;
  readonly turns: readonly CodexTurn[];
}

/** The version whose shapes these are; clients look for it. */
export const CODEX_VERSION = "0.166.0";
