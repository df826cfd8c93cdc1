/**
 * What `codex app-server` 0.166 puts on the wire, as far as Heddle says it. Fields that have no meaning here are present
 * and null, because clients read them; what Heddle adds stands beside them and is marked so.
 */
import type { ApprovalQuestion } from "@heddle/protocol";
import type { z } from "zod";
import type { WIRE_TYPES } from "./wire-types.ts";

export type RequestId = string | number;

export interface CodexNotification {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export type CodexServerRequest = CodexNotification;

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

/** What is sent is not changed afterwards. */
type Sent<T> = T extends readonly (infer Member)[]
  ? readonly Sent<Member>[]
  : T extends object
    ? { readonly [Key in keyof T]: Sent<T[Key]> }
    : T;
type Wire<Name extends keyof typeof WIRE_TYPES> = Sent<z.infer<(typeof WIRE_TYPES)[Name]>>;

export type CodexErrorInfo = Wire<"CodexErrorInfo">;
export type CodexTurnError = Wire<"TurnError">;
/** All have `type`, `id`, `startedAtMs` and `completedAtMs`; the rest depends on the type. */
export type CodexThreadItem = Wire<"ThreadItem">;
export type CodexTurn = Wire<"Turn">;
export type CodexSandboxPolicy = Wire<"SandboxPolicy">;
export type CodexGitInfo = Wire<"GitInfo">;
export type CodexThread = Wire<"Thread">;
