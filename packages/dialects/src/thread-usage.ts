/** What a thread used before the turn that runs now: also by turns of the same run whose ends were not shown. */
import { NO_USAGE, addUsage, type Usage } from "@heddle/protocol";

export interface ThreadUsage {
  /** A turn begins in this thread. */
  begin(thread: string): void;
  add(usage: Usage): void;
  /** undefined: the usage before the run is not known. */
  before(): Usage | undefined;
}

export function countThreadUsage(usageBefore: Usage | undefined): ThreadUsage {
  let thread: string | undefined;
  let before = usageBefore;
  let now = NO_USAGE;
  return {
    begin(started) {
      // Another thread has another past; the only one a run can begin is a new one.
      if (thread !== undefined && before !== undefined) before = started === thread ? addUsage(before, now) : NO_USAGE;
      thread = started;
      now = NO_USAGE;
    },
    add(usage) {
      now = addUsage(now, usage);
    },
    before: () => before,
  };
}

/** As app-server and chats send it. */
export function tokenBreakdown(usage: Usage): Record<string, number> {
  return {
    totalTokens: usage.inputTokens + usage.outputTokens,
    inputTokens: usage.inputTokens,
    cachedInputTokens: usage.cachedInputTokens,
    cacheWriteInputTokens: usage.cacheWriteInputTokens,
    outputTokens: usage.outputTokens,
    reasoningOutputTokens: usage.reasoningOutputTokens,
  };
}
