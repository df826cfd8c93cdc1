/** Errors of MCP servers as text: bounded, and without terminal escapes. */
import { HeddleError, isHeddleError, reasonOf, visibleText } from "@heddle/protocol";
import { fitText } from "../calls/fit-text.ts";

const MAX_MESSAGE_BYTES = 1024;

export function mcpError(message: string, cause?: unknown): HeddleError {
  return new HeddleError("mcp.failed", message, cause === undefined ? {} : { cause });
}

export function messageOf(error: unknown): string {
  const text = reasonOf(error);
  return isHeddleError(error) ? text : fitText(visibleText(text.trim()), MAX_MESSAGE_BYTES);
}
