export { appendAt } from "./threads/append-at.ts";
export { openHeddle } from "./open.ts";
export { keysInUse } from "./keys-in-use.ts";
export { turnEnvelope } from "./turns/turn-envelope.ts";
export { isThreadId } from "./heddle.ts";
export type {
  Acts,
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
export { readHistory, readPast, readStream } from "./threads/history.ts";
export { isKept, readPlan, turnsBack } from "./threads/past.ts";
export { openGoalTurns, type GoalTurns } from "./goals/goal-turns.ts";
export { answerClientCall } from "./approvals/client-tools.ts";
export { clearGoal, readGoal, setGoal, type GoalChange } from "./threads/goal.ts";
export { findAgent, type NameAgent } from "./agents/names.ts";
export { readAgent, readAgents } from "./agents/registry.ts";
export { MessageTurns } from "./messages/message-turns.ts";
export { readMessage, readMessages } from "./messages/read.ts";
export type { MessageRules } from "./messages/rules.ts";
export type { Sending } from "./messages/send.ts";
export { findEntry } from "./evidence/find-entry.ts";
export { noteEvidence, purgeNote, type GivenNote } from "./evidence/notes.ts";
export { purgeEvidence, purgeImport, type Purged } from "./evidence/purge.ts";
export { searchThreads, type Found } from "./threads/search.ts";
export type { ThreadBeginning } from "./threads/create-thread.ts";
export { parseJsonSchema } from "./turns/json-schema.ts";
export { changeGitInfo, changeSettings, injectEntries, revertThread, type RevertThread } from "./threads/changes.ts";
export { exportBundle } from "./threads/bundle.ts";
export {
  exportThread,
  findThread,
  type DeleteThread,
  type ForkThread,
  type NameThread,
  type ThreadSelector,
} from "./threads/threads.ts";
export { awaitTerminal, type TerminalEvent } from "./turns/terminal.ts";
export { isAnswered } from "./recovery/answered-socket.ts";
export { leaseStateOf, stateOf, thisHolder } from "./recovery/holder.ts";
export { StartWatch } from "./turns/start-watch.ts";
export { createSlots, type Slots } from "./side-requests/slots.ts";
export { isWorkerStream, type Member, type MemberOptions } from "./recovery/membership.ts";
export {
  claimDuty,
  drainWorker,
  fenceLost,
  fenceWorker,
  findWorker,
  listWorkers,
  type WorkerRow,
  type WorkerState,
} from "./recovery/workers.ts";
export { recover } from "./recovery/recover.ts";
export { createSerial, type Serial } from "./turns/serial.ts";
export { foldersFromRoot, repositoryRoot } from "./context/repository.ts";
export { openTurnQueue, queuedInputs, type QueuedInput, type QueueInput, type TurnQueue } from "./turns/queue.ts";
export { findSent, steerOnce, type Sent, type Steering } from "./turns/sent.ts";
export { checkLimits } from "./turns/limits.ts";
export { instructionsFor } from "./context/instructions.ts";
export { loadGuides } from "./context/guides.ts";
export { installedWith, withPluginServers } from "./context/installed.ts";
export { loadSkills, type SkillChoices } from "./context/skills.ts";
export { openMcpLogins } from "./mcp/mcp-logins.ts";
export { programFolders } from "./sandboxes/program-folders.ts";
export type { OutsideActs, OutsideDelta, OutsideResult, Surface } from "./runners/outside.ts";
export type { Runner, RunnerEvent, TurnIo, TurnOutcome, TurnRequest } from "./runners/runner.ts";
export { claimStore, type StoreClaim } from "./recovery/store-claim.ts";
