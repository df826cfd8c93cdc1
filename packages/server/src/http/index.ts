export { HttpDoor, type HttpDoorOptions, type TcpAt } from "./http-door.ts";
export type { HostFacts, SandboxFacts } from "./route.ts";
export type { TaskDoorOptions } from "./task-door.ts";
export {
  addToken,
  ensureOwnerToken,
  listTokens,
  openTokenBook,
  ownerTokenPath,
  revokeToken,
  type TokenEntry,
} from "./tokens.ts";
