/**
 * A configured hook, as every door passes it to the agent. Hooks come only from Heddle's own configuration, never from a
 * workspace: a hook of a repository would run before the user has looked at it.
 */
import { z } from "zod";

export const HookEvent = z.enum([
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PreCompact",
  "PostCompact",
  "Stop",
  "SessionEnd",
]);
export type HookEvent = z.infer<typeof HookEvent>;

/** The longest time one run may take: ten minutes. */
const MAX_TIMEOUT_MS = 10 * 60 * 1000;

export const HookConfig = z.strictObject({
  event: HookEvent,
  /** A regular expression for the whole tool name, source or trigger; absent, empty or `*`: every one. */
  matcher: z.string().optional(),
  /** A string is run by the shell, a list as it is. */
  command: z.union([z.string().min(1), z.array(z.string()).min(1)]),
  timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).optional(),
  /** Whether a hook that cannot start, fails or takes too long blocks. Absent: `closed` for PreToolUse, else `open`. */
  onFailure: z.enum(["open", "closed"]).optional(),
});
export type HookConfig = z.infer<typeof HookConfig>;

/** What a hook may print; unknown fields are ignored, because scripts are written for more than one program. */
export const HookOutput = z.object({
  continue: z.boolean().optional(),
  stopReason: z.string().optional(),
  decision: z.enum(["block", "approve"]).optional(),
  reason: z.string().optional(),
  hookSpecificOutput: z
    .object({
      permissionDecision: z.enum(["allow", "deny", "ask"]).optional(),
      permissionDecisionReason: z.string().optional(),
      additionalContext: z.string().optional(),
      updatedInput: z.unknown().optional(),
    })
    .optional(),
});
export type HookOutput = z.infer<typeof HookOutput>;
