/**
 * The Codex dialect is made for one person at one machine: its methods reach files, commands, configuration and accounts,
 * and none of them knows roles. So it is the owner's alone; others have the chat dialect and HTTP, where every method has a
 * scope.
 */
import { RPC, RpcError } from "../rpc/peer.ts";
import { scopeAllows, type Principal } from "./principals.ts";

export function requireCodexOwner({ role }: Principal): void {
  if (scopeAllows(role, "admin")) return;
  throw new RpcError(
    RPC.invalidRequest,
    `methods of codex app-server are only for the owner; a ${role} may use chat.* or HTTP`,
    { code: "door.forbidden", role },
  );
}
