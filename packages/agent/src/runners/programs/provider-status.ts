/** What the status means that the provider behind an agent answered with, where the agent tells it. */
import type { HeddleError } from "@heddle/protocol";

export function codeOfStatus(status: number): HeddleError["code"] {
  if (status === 401 || status === 403) return "auth.rejected";
  if (status === 429) return "provider.rate-limited";
  return status >= 500 ? "provider.overloaded" : "provider.rejected";
}

/** The same of the body of its answer, where the agent tells that in place of the status. */
export function codeOfBody(body: string): HeddleError["code"] | undefined {
  if (body.includes('"authentication_error"')) return "auth.rejected";
  return body.includes('"invalid_request_error"') ? "provider.rejected" : undefined;
}
