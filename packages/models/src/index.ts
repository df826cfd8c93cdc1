export { costOf, modelInfo, type ModelFamily, type ModelInfo, type Price } from "./catalog.ts";
export {
  BUILT_IN_PROVIDERS,
  ProviderConfig,
  resolveProvider,
  WIRES,
  type Limits,
  type Provider,
  type WireName,
} from "./providers.ts";
export { parseScript, Script, type ScriptCall, type ScriptStep } from "./script.ts";
export {
  streamModel,
  type ModelEvent,
  type ModelInput,
  type ModelRequest,
  type StopReason,
  type StreamOptions,
  type ToolSpec,
} from "./stream.ts";
