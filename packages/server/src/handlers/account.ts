/** Keys come from the configuration of whoever started the server; there is no account to log in to. */
import type { Reply } from "../peer.ts";

/** The older form of the same question; a token is never told. */
export function readAuthStatus(): Promise<Reply> {
  return Promise.resolve({ result: { authMethod: null, authToken: null, requiresOpenaiAuth: false } });
}

export function readAccount(): Promise<Reply> {
  return Promise.resolve({ result: { account: null, requiresOpenaiAuth: false, workspaceRouting: null } });
}
