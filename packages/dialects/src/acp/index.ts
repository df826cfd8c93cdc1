/**
 * The dialect of the Agent Client Protocol, version 1, on the agent's side: what its clients send and expect, as a pure
 * mapping from and to Heddle's own events, items, settings and questions.
 */
export { inputFrom, skillInput, slashCommand, type AcpInput, type SlashCommand } from "./input.ts";
export {
  ACP_PARAMS,
  Cancel,
  CancelRequest,
  type AcpMcpServer,
  type AcpMethod,
  type AcpParams,
  type ContentBlock,
} from "./params.ts";
export { answerFrom, permissionRequest } from "./permissions.ts";
export { AcpSessionDialect } from "./session.ts";
export {
  acpOrigin,
  charsOf,
  commandsUpdate,
  configOptions,
  MAX_INPUT_CHARS,
  sessionInfo,
  sessionState,
  UNSET,
  type AcpChoices,
  type AcpCommand,
} from "./state.ts";
export type { AcpClient, AcpEnd, AcpOutgoing, AcpRequest, AcpUpdate } from "./shapes.ts";
