export { HttpDoor, type HttpDoorOptions, type TcpAt } from "./http-door.ts";
export type { HostFacts, SandboxFacts } from "./route.ts";
export type { TaskDoorOptions } from "./task-door.ts";
export {
  addToken,
  ensureOwnerToken,
  listBrowsers,
  listTokens,
  openTokenBook,
  ownerTokenPath,
  revokeToken,
  type BrowserLogin,
  type TokenEntry,
} from "./tokens.ts";
