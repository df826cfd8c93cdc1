export {
  openHeddle,
  type Heddle,
  type HeddleOptions,
  type InterruptReason,
  type NewThread,
  type StartTurn,
  type TurnHandle,
} from "./open.ts";
export { lastSettings, readHistory } from "./history.ts";
export {
  archiveThread,
  exportThread,
  findThread,
  isThreadId,
  type DeleteThread,
  type ForkThread,
  type NameThread,
  type ThreadSelector,
} from "./threads.ts";
export { checkLimits } from "./limits.ts";
export type { TerminalEvent } from "./turn.ts";
export type { Runner, RunnerEvent, TurnIo, TurnOutcome, TurnRequest } from "./runner.ts";
