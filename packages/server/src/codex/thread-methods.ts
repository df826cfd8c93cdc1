/** What is done with a thread besides its turns. */
import {
  ReviewStartParams,
  TerminalTerminateParams,
  ThreadGoalSetParams,
  ThreadInjectItemsParams,
  ThreadMetadataUpdateParams,
  ThreadPageParams,
  ThreadParams,
  ThreadQueueAddParams,
  ThreadQueueDeleteParams,
  ThreadRevertParams,
  ThreadSampleCancelParams,
  ThreadSampleParams,
  ThreadSearchParams,
  ThreadSettingsUpdateParams,
  ThreadShellCommandParams,
} from "@heddle/dialects/codex-app-server";
import { clearGoal, getGoal, setGoal } from "./handlers/goals.ts";
import { injectItems, revertThread, updateMetadata } from "./handlers/history.ts";
import { addQueued, deleteQueued, listQueued } from "./handlers/queue.ts";
import { startReview } from "./handlers/review.ts";
import { cancelSample, sampleThread } from "./handlers/sample.ts";
import { searchThreads } from "./handlers/search.ts";
import { shellCommand } from "./handlers/shell.ts";
import { cleanTerminals, listTerminals, terminateTerminal } from "./handlers/terminals.ts";
import { updateSettings } from "./handlers/thread-settings.ts";
import { row, type Method } from "../rpc/method.ts";

export const THREAD_METHODS: Readonly<Record<string, Method>> = {
  "review/start": row(ReviewStartParams, startReview),
  "thread/shellCommand": row(ThreadShellCommandParams, shellCommand),
  "thread/inject_items": row(ThreadInjectItemsParams, injectItems),
  "thread/revert": row(ThreadRevertParams, revertThread),
  "thread/metadata/update": row(ThreadMetadataUpdateParams, updateMetadata),
  "thread/settings/update": row(ThreadSettingsUpdateParams, updateSettings),
  "thread/goal/set": row(ThreadGoalSetParams, setGoal),
  "thread/goal/get": row(ThreadParams, getGoal),
  "thread/goal/clear": row(ThreadParams, clearGoal),
  "thread/queue/add": row(ThreadQueueAddParams, addQueued),
  "thread/queue/list": row(ThreadPageParams, listQueued),
  "thread/queue/delete": row(ThreadQueueDeleteParams, deleteQueued),
  "thread/backgroundTerminals/list": row(ThreadPageParams, listTerminals),
  "thread/backgroundTerminals/terminate": row(TerminalTerminateParams, terminateTerminal),
  "thread/backgroundTerminals/clean": row(ThreadParams, cleanTerminals),
  "thread/sample": row(ThreadSampleParams, sampleThread),
  "thread/sample/cancel": row(ThreadSampleCancelParams, cancelSample),
  "thread/search": row(ThreadSearchParams, searchThreads),
};
