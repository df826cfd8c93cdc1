/** `heddle/engine`: what programs import to run turns in their own process. Nothing here is called by the command line. */
export { HeddleError, isHeddleError } from "@heddle/protocol";
export type { Decision, ErrorCode } from "@heddle/protocol";
export type {
  ApprovalQuestion,
  EventBody,
  Failure,
  InputPart,
  Item,
  StreamedDelta,
  StreamedEvent,
  TurnSettings,
  Usage,
} from "@heddle/protocol/http";
export { openHeddle } from "./open.ts";
export type { Answer, EventsOptions, Heddle, OpenOptions, StartTurn, Turn, TurnResult } from "./types.ts";
