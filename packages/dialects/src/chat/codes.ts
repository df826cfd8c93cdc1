/** Numbers of the wire for Heddle's codes. −32603 is for unexpected errors. */
import type { ErrorCode } from "@heddle/protocol";

export const CHAT_RPC = {
  failed: -32000,
  unauthorized: -32001,
  notFound: -32002,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const;

const CODES: Partial<Readonly<Record<ErrorCode, number>>> = {
  internal: CHAT_RPC.internal,
  "door.forbidden": CHAT_RPC.unauthorized,
  "thread.not-found": CHAT_RPC.notFound,
  "turn.not-found": CHAT_RPC.notFound,
  "approval.not-found": CHAT_RPC.notFound,
  "login.not-found": CHAT_RPC.notFound,
  "usage.invalid": CHAT_RPC.invalidParams,
  "workspace.missing": CHAT_RPC.invalidParams,
  "workspace.moved": CHAT_RPC.invalidParams,
  "prompt.empty": CHAT_RPC.invalidParams,
  "model.unknown": CHAT_RPC.invalidParams,
  "provider.unknown": CHAT_RPC.invalidParams,
  "config.invalid": CHAT_RPC.invalidParams,
};

export function chatRpcCode(code: ErrorCode): number {
  return CODES[code] ?? CHAT_RPC.failed;
}
