export type { RequestProgress } from "./answer.ts";
export { warmProvider } from "./attempt.ts";
export { knownModels, modelInfo, type ModelFamily, type ModelInfo } from "./catalog.ts";
export { catalogProvider } from "./catalog/lookup.ts";
export { storedSecrets } from "./auth/stored-secrets.ts";
export { isKeyVariable } from "./catalog/rows.ts";
export { answeringNotes } from "./answering.ts";
export { fitEffort } from "./efforts.ts";
export { heddleHome } from "./home.ts";
export { costOf, type Price } from "./price.ts";
export {
  BUILT_IN_PROVIDERS,
  findConfig,
  keyVariable,
  resolveProvider,
  type Limits,
  type Provider,
  type ProviderConfig,
  type WireName,
} from "./providers.ts";
export {
  isAmbient,
  listsModels,
  type CredentialSource,
  type Outgoing,
  type ProviderAuth,
  type SecretListener,
} from "./provider-auth.ts";
export type { Script, ScriptCall, ScriptStep } from "./script.ts";
export {
  streamModel,
  type ModelEvent,
  type ModelInput,
  type ModelRequest,
  type StopReason,
  type StreamOptions,
  type ToolSpec,
} from "./stream.ts";
export { codexUserAgent } from "./user-agent.ts";
export { searchProblem } from "./web-search.ts";
