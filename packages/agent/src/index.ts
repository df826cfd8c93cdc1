export { openHeddle } from "./open.ts";
export { keysInUse } from "./keys-in-use.ts";
export type {
  Heddle,
  HeddleOptions,
  InterruptReason,
  NewThread,
  RunShell,
  StartTurn,
  RunningCommand,
  Terminal,
  TurnHandle,
} from "./heddle.ts";
export { lastSettings, readHistory, readPast, withoutReverted } from "./history.ts";
export { answerClientCall } from "./client-tools.ts";
export { clearGoal, readGoal, setGoal, type GoalChange, type StandingGoal } from "./goal.ts";
export { searchThreads, type Found } from "./search.ts";
export type { ThreadBeginning } from "./create-thread.ts";
export { injectEntries } from "./inject.ts";
export { parseJsonSchema } from "./json-schema.ts";
export { changeGitInfo } from "./metadata.ts";
export { revertThread, type RevertThread } from "./revert.ts";
export { reviewPrompt, reviewSubject, type ReviewTarget } from "./review.ts";
export {
  exportThread,
  findThread,
  isThreadId,
  type DeleteThread,
  type ForkThread,
  type NameThread,
  type ThreadSelector,
} from "./threads.ts";
export { awaitTerminal } from "./await-terminal.ts";
export { stateOf, thisHolder } from "./holder.ts";
export { StartWatch } from "./start-watch.ts";
export { createSlots, type Slots } from "./slots.ts";
export { recover } from "./recover.ts";
export { createSerial, type Serial } from "./serial.ts";
export { foldersFromRoot } from "./surroundings.ts";
export { openTurnQueue, queuedInputs, type QueuedInput, type QueueInput, type TurnQueue } from "./queue.ts";
export { findSent, steerOnce, type Sent } from "./sent.ts";
export { changeSettings, readWishes } from "./thread-settings.ts";
export { checkLimits } from "./limits.ts";
export { loadSkills, type SkillChoices } from "./skills.ts";
export { openMcpLogins } from "./mcp-logins.ts";
export { programFolders } from "./program-folders.ts";
export type { TerminalEvent } from "./turn.ts";
export type { Runner, RunnerEvent, TurnIo, TurnOutcome, TurnRequest } from "./runner.ts";
export { claimStore, type StoreClaim } from "./store-claim.ts";
