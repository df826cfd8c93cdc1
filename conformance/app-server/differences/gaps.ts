/** What Codex does and Heddle does not do yet. Each is a defect until it is gone from here. */
import type { Difference } from "../differences.ts";

function gap(difference: Omit<Difference, "isGap">): Difference {
  return { ...difference, isGap: true };
}

/** The method is refused, and with it everything that would have come of it. */
function withoutMethod(scenario: string, method: string): readonly Difference[] {
  const why = `${method} is not served yet`;
  const error = { code: -32601, message: `${method} is not supported by heddle app-server` };
  const message = new RegExp(`^answer ${method}$`);
  const where = { in: new RegExp(`^${scenario}$`), message };
  return [
    gap({ ...where, path: /^error$/, heddle: error, why }),
    gap({ ...where, path: /^result$/, heddle: undefined, why }),
  ];
}

function nothingComes(scenario: string): Difference {
  const where = new RegExp(`^${scenario}$`);
  return gap({ in: where, kind: "missing", why: "what a method sets going that is not served yet" });
}

function nobodyWaits(scenario: string, missed: string): Difference {
  const where = new RegExp(`^${scenario}$`);
  return gap({ in: where, kind: "added", heddle: { missed }, why: "what a client waits for in vain" });
}

export const GAPS: readonly Difference[] = [
  ...withoutMethod("shell-command", "thread/shellCommand"),
  nothingComes("shell-command"),
  nobodyWaits("shell-command", "turn/completed"),
  ...withoutMethod("review", "review/start"),
  nothingComes("review"),
  nobodyWaits("review", "turn/completed"),
  ...withoutMethod("goals", "thread/goal/get"),
  ...withoutMethod("goals", "thread/goal/set"),
  nothingComes("goals"),
  nobodyWaits("goals", "thread/goal/updated"),
  ...withoutMethod("inject-items", "thread/inject_items"),
  ...withoutMethod("surroundings", "mcpServerStatus/list"),
  ...withoutMethod("surroundings", "hooks/list"),
  ...withoutMethod("surroundings", "collaborationMode/list"),
  ...withoutMethod("surroundings", "modelProvider/capabilities/read"),
  ...withoutMethod("surroundings", "configRequirements/read"),
  gap({
    in: /^surroundings$/,
    message: /^answer account\/rateLimits\/read$/,
    path: /^error\.(code|message)$/,
    why: "account/rateLimits/read is not served yet",
  }),
  gap({
    in: /^compact$/,
    message: /^(item\/(started|completed) contextCompaction|thread\/tokenUsage\/updated|warning)$/,
    why: "a short conversation is not made smaller when a client asks for it; it is told so",
  }),
  gap({
    in: /^approve-(escalation|change-read-only)$/,
    message: /requestApproval$|^serverRequest\/resolved$|^thread\/status\/changed active$|^turn\/diff\/updated$/,
    why: "what an envelope forbids is refused; the user cannot allow it for one call yet",
  }),
  gap({
    in: /^approve-change-read-only$/,
    message: /^item\/completed fileChange$/,
    path: /item\.status$/,
    codex: "completed",
    heddle: "declined",
    why: "what an envelope forbids is refused; the user cannot allow it for one call yet",
  }),
  gap({
    in: /^no-settings$/,
    message: /^answer thread\/start$/,
    path: /^result\.(sandbox\.|activePermissionProfile\.id)/,
    why: "a thread without a sandbox of its own may write its workspace; Codex reads only, in a folder nobody trusts",
  }),
  gap({
    message: /^answer thread\/(start|resume)$/,
    path: /activePermissionProfile$/,
    codex: null,
    why: "Codex names a profile only where none of its parts was given",
  }),
  gap({
    in: /^wrong-params$/,
    message: /^answer (turn\/start|thread\/list)$/,
    path: /^error\.message$/,
    why: "other words about what was expected",
  }),
  gap({
    in: /^unknown-thread$/,
    message: /^answer thread\/(resume|unarchive)$/,
    path: /^error\.message$/,
    why: "other words about what is not there",
  }),
  gap({ in: /^thread-name$/, message: /^answer thread\/name\/set$/, path: /^error\.message$/, why: "other words" }),
  gap({
    message: /^item\/(started|completed) fileChange$/,
    path: /\.diff$/,
    why: "the content of added and deleted files is told as a diff",
  }),
  gap({ message: /^turn\/diff\/updated$/, why: "the diff of a turn names no files, and comes once" }),
  gap({
    in: /^model-fails$/,
    message: /^error$/,
    kind: "added",
    why: "every request that is sent again is told, not only every stream",
  }),
  gap({
    in: /^model-fails$/,
    path: /codexErrorInfo$/,
    codex: "internalServerError",
    heddle: "serverOverloaded",
    why: "a status of 500 is called overload",
  }),
  gap({
    in: /^model-recovers$/,
    kind: "missing",
    message: /^item\/started agentMessage$/,
    why: "a message that broke off is not announced again",
  }),
  gap({ in: /^image$/, path: /content\.1\.detail$/, codex: null, heddle: undefined, why: "the field is missing" }),
  gap({
    message: /^item\/completed commandExecution$/,
    path: /aggregatedOutput$/,
    codex: null,
    heddle: "",
    why: "no output is told as an empty text",
  }),
  gap({
    in: /^(thread-resume|thread-fork|two-clients)$/,
    kind: "missing",
    message: /^thread\/tokenUsage\/updated$/,
    why: "what a thread has used so far is not told to whoever comes to it",
  }),
  gap({
    in: /^(thread-resume|two-clients)$/,
    kind: "missing",
    message: /^thread\/goal\/cleared$/,
    why: "there are no goals yet",
  }),
  gap({
    message: /^answer thread\/resume$/,
    path: /(collaborationMode|turnsBackwardsCursor|itemsBackwardsCursor)$/,
    heddle: null,
    why: "not told when a thread is resumed",
  }),
];
