export type { RequestProgress } from "./requests/answer.ts";
export { warmProvider } from "./requests/attempt.ts";
export { knownModels, modelInfo, type ModelFamily, type ModelInfo } from "./catalog/catalog.ts";
export { catalogProvider } from "./catalog/lookup.ts";
export { storedSecrets } from "./auth/stored-secrets.ts";
export { isKeyVariable } from "./catalog/rows.ts";
export { answeringNotes } from "./wire/answering.ts";
export { fitEffort } from "./catalog/efforts.ts";
export { heddleHome } from "./home.ts";
export { costOf, type Price } from "./catalog/price.ts";
export {
  BUILT_IN_PROVIDERS,
  findConfig,
  keyVariable,
  resolveProvider,
  type Limits,
  type Provider,
  type ProviderConfig,
  type WireName,
} from "./providers/providers.ts";
export {
  isAmbient,
  listsModels,
  type CredentialSource,
  type Outgoing,
  type ProviderAuth,
  type SecretListener,
} from "./providers/provider-auth.ts";
export type { Script, ScriptCall, ScriptStep } from "./scripted/script.ts";
export {
  streamModel,
  type ModelEvent,
  type ModelInput,
  type ModelRequest,
  type StopReason,
  type StreamOptions,
  type ToolSpec,
} from "./requests/stream.ts";
export { codexUserAgent } from "./requests/user-agent.ts";
export { searchProblem } from "./wire/web-search.ts";
