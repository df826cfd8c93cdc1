export { ensureTokenFile, readTokenFile, tokenCheck, type TokenCheck } from "./access/auth.ts";
export type { Channel, ChannelListener } from "./rpc/channel.ts";
export { AppServer, type ServerOptions } from "./server.ts";
export type {
  ConfigEdit,
  ConfigLayer,
  ConfigSource,
  ConfigView,
  ConfigWritten,
  Host,
  HostSkills,
} from "./host/host.ts";
export { isLoopback } from "./access/loopback.ts";
export type { ResolvedSettings, SettingsRequest, SettingsResolver, SettingsSource } from "./codex/settings.ts";
export type { Listener } from "./transports/server.ts";
export { stdioChannel } from "./transports/line-channel.ts";
export { listenUnix } from "./transports/unix.ts";
export { listenWebsocket } from "./transports/websocket.ts";
export {
  isRole,
  LOCAL_OWNER,
  ROLES,
  scopeAllows,
  SCOPES,
  type Principal,
  type Role,
  type Scope,
} from "./access/principals.ts";
export { RunningTurns } from "./turns/running-turns.ts";
export type { TlsPair } from "./transports/server.ts";
