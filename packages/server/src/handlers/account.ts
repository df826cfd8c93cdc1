/** Keys come from the configuration of whoever started the server; there is no account to log in to. */
import type { Reply } from "../peer.ts";

export function readAccount(): Promise<Reply> {
  return Promise.resolve({ result: { account: null, requiresOpenaiAuth: false, workspaceRouting: null } });
}
