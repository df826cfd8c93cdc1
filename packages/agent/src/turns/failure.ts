/** An error as it is stored: code, message and facts, without the stack. */
import { toHeddleError, type ErrorCode, type Failure } from "@heddle/protocol";

export function toFailure(error: unknown, fallback: ErrorCode = "internal"): Failure {
  const { code, message, details } = toHeddleError(error, fallback);
  return { code, message, ...(Object.keys(details).length === 0 ? {} : { details: { ...details } }) };
}
