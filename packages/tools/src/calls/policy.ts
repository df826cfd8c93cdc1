/**
 * Decides what happens to a call that the envelope permits: run, ask, or deny. Pure. An answer to a question lets a call run
 * inside the envelope. A call that requests more than its envelope gives is a hop and needs an approval.
 *
 *   never       run in the sandbox, or deny; never ask
 *   on-request  in a sandbox: run. Without one: ask before anything that is not known to be harmless
 *   untrusted   ask before everything that is not known to be read-only
 */
import { createHash } from "node:crypto";
import { canonical, never, type ApprovalQuestion, type Effect, type Envelope, type ErrorCode } from "@heddle/protocol";
import { isInside } from "./call-path.ts";

export interface CallFacts {
  readonly tool: string;
  readonly effects: readonly Effect[];
  /** The call changes nothing, by its effects or because its command is known. */
  readonly isReadOnly: boolean;
  /** The call requests more than the envelope gives; the reason is the model's own. */
  readonly hop?: { readonly reason?: string | undefined } | undefined;
  readonly isQuestion?: boolean;
  /** The configuration requires an approval for each call of this tool that changes something. */
  readonly needsPerson?: boolean;
  /** Absolute. */
  readonly writePaths: readonly string[];
  readonly cwd: string;
  readonly approvalKey: string;
}

export type PolicyDecision =
  | { readonly kind: "run" }
  | { readonly kind: "ask"; readonly reason: string }
  | { readonly kind: "deny"; readonly code: ErrorCode; readonly message: string };

const RUN: PolicyDecision = { kind: "run" };

export function decide(facts: CallFacts, envelope: Envelope, remembered: ReadonlySet<string>): PolicyDecision {
  if (facts.isQuestion === true) return decideQuestion(envelope);
  if (facts.hop !== undefined && envelope.sandbox === "required")
    return decideHop(facts, facts.hop.reason, { envelope, remembered });
  const isForPerson = facts.needsPerson === true && !isHarmless(facts);
  const reason = isForPerson ? "the configuration requires an approval" : reasonToAsk(facts, envelope);
  if (reason === undefined || remembered.has(facts.approvalKey)) return RUN;
  if (isForPerson && envelope.approval === "never") {
    return {
      kind: "deny",
      code: "policy.denied",
      message: `${facts.tool} needs an approval and this run cannot ask for one; the user can allow it with --allow-tool ${facts.tool} or with the approval mode "auto"`,
    };
  }
  return { kind: "ask", reason };
}

function decideQuestion({ approval }: Envelope): PolicyDecision {
  if (approval !== "never") return { kind: "ask", reason: "the agent asks" };
  const message = "no question can be asked in this thread; decide yourself and tell the user what you assumed";
  return { kind: "deny", code: "policy.denied", message };
}

function decideHop(
  { approvalKey: key }: CallFacts,
  reason: string | undefined,
  { envelope, remembered }: { readonly envelope: Envelope; readonly remembered: ReadonlySet<string> },
): PolicyDecision {
  if (envelope.approval === "never") {
    return {
      kind: "deny",
      code: "policy.denied",
      message:
        "this thread keeps every call inside its sandbox and never asks; do it inside, or tell the user which sandbox mode it needs",
    };
  }
  return remembered.has(key) ? RUN : { kind: "ask", reason: reason ?? "it wants more than its sandbox allows" };
}

/**
 * A message goes to the client that brought the tool, which would also answer the question. What a child thread does is asked
 * for in its own turns.
 */
const HARMLESS: ReadonlySet<Effect> = new Set(["read", "message", "spawn"]);

function isHarmless(facts: CallFacts): boolean {
  return facts.isReadOnly || facts.effects.every((effect) => HARMLESS.has(effect));
}

function reasonToAsk(facts: CallFacts, envelope: Envelope): string | undefined {
  switch (envelope.approval) {
    case "never":
      return undefined;
    case "on-request":
      if (envelope.sandbox === "required" || isHarmless(facts)) return undefined;
      if (facts.effects.includes("exec")) return "no sandbox confines this command";
      return facts.writePaths.every((path) => isInside(path, facts.cwd))
        ? undefined
        : "it writes outside the working folder and no sandbox confines it";
    case "untrusted":
      return isHarmless(facts) ? undefined : "it is not known to be read-only";
    default:
      return never(envelope.approval);
  }
}

/** What "accept for this thread" covers: exactly the same act in the same folder, never a prefix of a text. */
export function approvalKey(question: ApprovalQuestion): string {
  // The description is covered by the hash of the definition.
  const {
    callId: _callId,
    itemId: _itemId,
    reason: _reason,
    description: _words,
    ...act
  } = {
    description: undefined,
    ...question,
  };
  return createHash("sha256").update(canonical(act)).digest("hex");
}
