/**
 * Hops that the model asks for by name, in a running turn. Guards run in the envelope that is left; what still runs there has
 * ended before it is left; leaving and entering are one append.
 *
 *   admit: rules ─▶ guards ─▶ (ask) ─▶ intent ─▶ enter: new sandbox open ─▶ commands ended ─▶ left + entered ─▶ next call
 *              └────────┴───────┴──▶ envelope.hop-refused
 */
import {
  HeddleError,
  toHeddleError,
  type ApprovalQuestion,
  type Envelope,
  type Failure,
  type SandboxLevel,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { HOP, type EnvelopeHops } from "@heddle/tools";
import type { HopAsked } from "@heddle/tools/hops";
import { envelopeText } from "../context/envelope-text.ts";
import type { ChangedSandbox, TurnRequest } from "../runners/runner.ts";
import type { PolicyIo } from "../turns/policy.ts";
import { findEvidence } from "./hop-guards.ts";
import { hopEvents, judgeRequest, placeOf, refusedEvents, type AllowedHop, type RefusedHop } from "./judge-request.ts";

/** `onEntered`: after the thread has entered another envelope. */
export function createModelHops(turn: TurnRequest, io: PolicyIo, onEntered: () => void): EnvelopeHops {
  const { threadId, turnId, workspace, sandboxContext } = turn;
  /** By call. */
  const admitted = new Map<string, AllowedHop>();

  async function refuse(refusal: RefusedHop): Promise<Failure> {
    await io.record(refusedEvents(refusal, sandboxContext.envelope, turnId));
    return refusal.failure;
  }

  async function judge(request: HopAsked): Promise<AllowedHop | RefusedHop> {
    return judgeRequest(request, {
      threadId,
      workspace,
      channel: "model",
      place: await placeOf(io.journal, threadId, turnId),
      envelopes: sandboxContext,
      findEvidence: findEvidence(io.journal),
      duringTurn: turnId,
      signal: io.signal,
      sandbox: async () => ({
        sandbox: sandboxContext.sandbox,
        environment: sandboxContext.state.environment,
      }),
    });
  }

  /** What the host cannot give is a refusal: the thread stays where it is. */
  async function change({ to, facts, proofs }: AllowedHop, callId: string): Promise<SandboxLevel> {
    let changed: ChangedSandbox;
    try {
      changed = await sandboxContext.change(to);
    } catch (error) {
      const { code, message } = toHeddleError(error);
      await refuse({ kind: "refused", facts, proofs, failure: { code, message } });
      throw error;
    }
    for (const violation of changed.violations) {
      await io.record([{ type: "path.violated", v: 1, turnId, callId, ...violation }], "system");
    }
    return changed.sandboxContext.sandbox.level;
  }

  return {
    async admit(request, { callId, itemId }) {
      const judged = await judge(request);
      const hop = { ...judged, facts: { ...judged.facts, callId } };
      if (hop.kind === "refused") return { kind: "refused", failure: await refuse(hop) };
      const from = sandboxContext.envelope;
      const { to } = hop.facts;
      const declined = (why: string | undefined): Promise<Failure> => {
        const message = `the hop to ${to} was declined${why === undefined ? "" : `: ${why}`}`;
        const { facts, proofs } = hop;
        return refuse({ kind: "refused", facts, proofs, failure: { code: "hop.approval-denied", message } });
      };
      const asks = hop.edge?.approval === "ask";
      if (asks && from.approval === "never") {
        return { kind: "refused", failure: await declined("no approval is asked here; the user can take the hop") };
      }
      admitted.set(callId, hop);
      if (!asks) return { kind: "run" };
      return { kind: "ask", question: questionOf(hop, { from, callId, itemId }), declined };
    },
    async enter({ callId }, answer) {
      const allowed = admitted.get(callId);
      admitted.delete(callId);
      if (allowed === undefined) throw new HeddleError("internal", `the hop of call ${callId} was not judged`);
      const { approvalId } = answer ?? {};
      const hop = { ...allowed, facts: { ...allowed.facts, ...(approvalId === undefined ? {} : { approvalId }) } };
      const place = await placeOf(io.journal, threadId, turnId);
      const sandboxLevel = await change(hop, callId);
      await io.settleFollowed();
      failpoint("hop.before-enter");
      const { journal, signal } = io;
      const entering = { journal, workspace, signal, place, sandboxLevel, duringTurn: turnId };
      await io.record(await hopEvents(hop, entering));
      failpoint("hop.after-enter");
      onEntered();
      const { carry } = hop.facts;
      const carried = carry === undefined ? [] : [`carried: ${JSON.stringify(carry)}`];
      return [envelopeText(hop.to), `left: ${place.envelope.id}`, ...carried].join("\n");
    },
  };
}

interface Asking {
  readonly from: Envelope;
  readonly callId: string;
  readonly itemId: string;
}

function questionOf({ to, facts }: AllowedHop, { from, callId, itemId }: Asking): ApprovalQuestion {
  const { carry, reason } = facts;
  const hop = { from: from.id, to: to.id, ...(carry === undefined ? {} : { carry }) };
  const question = { kind: "tool", callId, itemId, reason, tool: HOP, arguments: hop } as const;
  // Only an owner may let an agent leave its sandbox.
  return to.sandbox === "off" && from.sandbox !== "off" ? { ...question, wish: { kind: "outside" } } : question;
}
