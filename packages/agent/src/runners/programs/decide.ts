/**
 * What happens to a question of an agent program. The kernel holds its whole process, whatever is answered, so a yes never
 * widens its sandbox; what the envelope of the turn does not permit is refused before a question is put.
 *
 *   never       yes, within the sandbox
 *   on-request  within the sandbox: yes. Beyond it, or without one: asked
 *   untrusted   asked, unless it is known to be harmless
 */
import type { ApprovalAnswer, ApprovalQuestion, Envelope } from "@heddle/protocol";
import type { TurnIo } from "../runner.ts";
import type { Act } from "./conversation.ts";

interface Deciding {
  readonly envelope: Envelope;
  readonly io: Pick<TurnIo, "ask">;
  /** It was answered elsewhere. */
  readonly takenBack?: AbortSignal | undefined;
}

export async function decide(
  question: ApprovalQuestion,
  act: Act,
  { envelope, io, takenBack }: Deciding,
): Promise<ApprovalAnswer> {
  const refusal = refusalOf(act, envelope);
  if (refusal !== undefined) return { decision: "decline", reason: refusal };
  if (!needsPerson(question, act, envelope)) return { decision: "accept" };
  if (envelope.approval === "never") return { decision: "decline", reason: "no question can be put in this thread" };
  return io.ask(question, takenBack);
}

function needsPerson({ kind }: ApprovalQuestion, act: Act, { approval, sandbox }: Envelope): boolean {
  if (kind === "userInput" || kind === "elicitation") return true;
  if (approval === "never" || act.isHarmless) return false;
  return approval === "untrusted" || act.isBeyond || sandbox === "off";
}

/** Where nothing may be written, a command may still run: its sandbox is read-only. */
function refusalOf({ effect }: Act, { id, effects, network, writeRoots }: Envelope): string | undefined {
  if (effect === "write" && (!effects.includes("write") || writeRoots.length === 0))
    return `the envelope ${id} does not permit to write`;
  if (effect === "exec" && !effects.includes("exec")) return `the envelope ${id} does not permit to run commands`;
  if (effect === "net" && network === "none") return `the envelope ${id} has no network`;
  return undefined;
}
