export { openHeddle } from "./open.ts";
export type { Heddle, HeddleOptions, InterruptReason, NewThread, StartTurn, TurnHandle } from "./heddle.ts";
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
export { awaitTerminal } from "./await-terminal.ts";
export { createSerial, type Serial } from "./serial.ts";
export { foldersFromRoot } from "./surroundings.ts";
export { openTurnQueue, queuedInputs, type QueuedInput, type QueueInput, type TurnQueue } from "./queue.ts";
export { findSent, steerOnce, type Sent } from "./sent.ts";
export { changeSettings, readWishes } from "./thread-settings.ts";
export { checkLimits } from "./limits.ts";
export { loadSkills } from "./skills.ts";
export type { TerminalEvent } from "./turn.ts";
export type { Runner, RunnerEvent, TurnIo, TurnOutcome, TurnRequest } from "./runner.ts";
export { claimStore, type StoreClaim } from "./store-claim.ts";
