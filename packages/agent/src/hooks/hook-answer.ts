/**
 * What a hook's exit code and output mean. Pure.
 *
 *   exit 0   nothing against it; a JSON object on the output may say more
 *   exit 2   no; the output is the reason
 *   others   the hook itself failed
 */
import { HookOutput, type HookEvent } from "@heddle/protocol";
import { fitText } from "@heddle/tools";

export type HookAnswer =
  | { readonly kind: "ok"; readonly notes: readonly string[] }
  | { readonly kind: "blocked"; readonly reason: string; readonly notes: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

/** Events at which a refusal changes what happens next. */
const CAN_BLOCK: ReadonlySet<HookEvent> = new Set([
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PreCompact",
  "Stop",
]);
/** Events at which plain output is for the model. */
const SPEAKS_PLAINLY: ReadonlySet<HookEvent> = new Set(["SessionStart", "UserPromptSubmit"]);

const MAX_NOTE_BYTES = 8 * 1024;
const MAX_REASON_BYTES = 2 * 1024;
export const BLOCKING_EXIT = 2;

export function readHookAnswer(event: HookEvent, exitCode: number, output: string): HookAnswer {
  const text = output.trim();
  if (exitCode === BLOCKING_EXIT) return block(event, text, []);
  if (exitCode !== 0)
    return { kind: "failed", message: `it ended with code ${exitCode}${text === "" ? "" : `: ${short(text)}`}` };
  const json = jsonIn(text);
  if (json === undefined) {
    if (text.startsWith("{")) return { kind: "failed", message: `its output is not valid JSON: ${short(text)}` };
    return { kind: "ok", notes: SPEAKS_PLAINLY.has(event) ? notes(text) : [] };
  }
  const parsed = HookOutput.safeParse(json);
  if (!parsed.success)
    return { kind: "failed", message: `its output is not understood: ${parsed.error.issues[0]?.path.join(".") ?? ""}` };
  return decided(event, parsed.data);
}

function decided(event: HookEvent, output: HookOutput): HookAnswer {
  const { permissionDecision, permissionDecisionReason, additionalContext, updatedInput } =
    output.hookSpecificOutput ?? {};
  // Running other input than was asked for must not look like consent.
  if (updatedInput !== undefined && updatedInput !== null) {
    return { kind: "failed", message: "it wants to change the input of a call, which is not possible here" };
  }
  const added = notes(additionalContext ?? "");
  if (permissionDecision === "deny" || permissionDecision === "ask") {
    return block(event, permissionDecisionReason ?? output.reason ?? "", added);
  }
  // At Stop a refusal means to continue; `continue: false` means to stop, which happens anyway.
  if (output.continue === false && event !== "Stop")
    return block(event, output.stopReason ?? output.reason ?? "", added);
  if (output.decision === "block" && output.continue !== false) return block(event, output.reason ?? "", added);
  return { kind: "ok", notes: added };
}

function block(event: HookEvent, reason: string, added: readonly string[]): HookAnswer {
  if (!CAN_BLOCK.has(event))
    return { kind: "failed", message: `it refused, which a ${event} hook cannot: ${short(reason)}` };
  return {
    kind: "blocked",
    reason: reason === "" ? "no reason was given" : fitText(reason, MAX_REASON_BYTES),
    notes: added,
  };
}

/** The whole output, or its last line: scripts may print other things first. */
function jsonIn(text: string): object | undefined {
  for (const candidate of [text, text.slice(text.lastIndexOf("\n") + 1)]) {
    if (!candidate.startsWith("{")) continue;
    try {
      const value: unknown = JSON.parse(candidate);
      if (typeof value === "object" && value !== null) return value;
    } catch {
      continue;
    }
  }
  return undefined;
}

function notes(text: string): string[] {
  return text.trim() === "" ? [] : [fitText(text.trim(), MAX_NOTE_BYTES)];
}

function short(text: string): string {
  return text.split("\n", 1)[0]?.slice(0, 200) ?? "";
}
