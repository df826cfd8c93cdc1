export { warmProvider } from "./attempt.ts";
export { costOf, knownModels, modelInfo, type ModelFamily, type ModelInfo, type Price } from "./catalog.ts";
export {
  BUILT_IN_PROVIDERS,
  keyVariable,
  resolveProvider,
  type CredentialSource,
  type Limits,
  type Provider,
  type ProviderConfig,
  type WireName,
} from "./providers.ts";
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
