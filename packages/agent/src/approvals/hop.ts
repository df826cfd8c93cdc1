/**
 * Hops of a turn. By name, into another envelope: `envelope-hops.ts`. And what the user allows beyond the envelope here. Each is an event before anything runs in the wider
 * envelope, none goes above the thread's ceiling, and each ends with its scope.
 *
 *   request ─▶ above the ceiling, or nobody to ask ─▶ hop.refused
 *        └▶ allowed ─▶ hop.taken ─▶ call:   this one runs in another sandbox
 *                                   turn:   the calls that follow do, until the turn ends
 *                                   thread: its later turns too, while the thread keeps its sandbox mode
 */
import type { Envelope, EventBody, HopRequest, Permissions } from "@heddle/protocol";
import { envelopeHash, widenEnvelope, type EnvelopeHops, type Hops, type SandboxContext } from "@heddle/tools";
import type { TurnSandbox, TurnRequest } from "../runners/runner.ts";
import type { PolicyIo } from "../turns/policy.ts";
import { requireBelow } from "../turns/turn-envelope.ts";

export interface TurnHops extends Hops {
  /** The sandbox of the next call. */
  readonly current: SandboxContext;
  /** How many envelopes the turn has entered by name. */
  readonly entered: number;
  /** For the tool of the model. */
  readonly byName: EnvelopeHops;
}

export interface OpenHops extends TurnHops {
  /** At the end of the turn: closes sandboxes that were opened for the turn, with everything that still runs there. */
  end(): Promise<void>;
}

export function createHops(turn: TurnRequest, io: PolicyIo): OpenHops {
  const { turnId, sandboxContext } = turn;
  const { ceiling } = sandboxContext;
  let wider: SandboxContext | undefined;
  let enteredByName = 0;
  /** Envelopes of this turn, one after the other; each includes those before it. */
  const entered: Envelope[] = [];
  let isForTurn = turn.history.some(({ body }) => isHopFor(body, turnId));
  if (isForTurn) entered.push(sandboxContext.envelope);
  const current = (): SandboxContext => wider ?? sandboxContext;
  return {
    get current() {
      return current();
    },
    get entered() {
      return enteredByName;
    },
    byName: loadedWhenAsked(turn, io, () => {
      enteredByName += 1;
      // What was allowed beyond the envelope that was left ended with it.
      wider = undefined;
      entered.length = 0;
    }),
    check(request) {
      requireBelow(widenEnvelope(current().envelope, request), ceiling);
    },
    async take({ callId, request, scope, by }) {
      const { envelope } = current();
      const from = envelopeHash(envelope);
      const to = widenEnvelope(envelope, request);
      const toHash = envelopeHash(to);
      if (toHash === from) return current();
      requireBelow(to, ceiling);
      const widened = await sandboxContext.widen(to);
      const more = request.kind === "wider" ? { permissions: request.permissions } : {};
      const hop = { turnId, callId, scope, from, to, toHash, sandboxLevel: widened.sandbox.level, ...more };
      await io.record([{ type: "hop.taken", v: 1, ...hop }], by);
      if (scope === "call") return widened;
      entered.push(to);
      isForTurn ||= scope === "turn";
      wider = widened;
      return widened;
    },
    async end() {
      if (!isForTurn) return;
      for (const envelope of entered) {
        const violations = await sandboxContext.narrow(envelope);
        if (violations.length === 0) continue;
        const events = violations.map((violation) => ({
          type: "path.violated" as const,
          v: 1 as const,
          turnId,
          ...violation,
        }));
        await io.record(events, "system");
      }
    },
    async refuse(callId, request, { code, message }) {
      await io.record(
        [{ type: "hop.refused", v: 1, turnId, callId, wish: request, failure: { code, message } }],
        "system",
      );
    },
  };
}

/** Most turns hop nowhere and load nothing for it. */
function loadedWhenAsked(turn: TurnRequest, io: PolicyIo, onEntered: () => void): EnvelopeHops {
  let loaded: Promise<EnvelopeHops> | undefined;
  const load = (): Promise<EnvelopeHops> =>
    (loaded ??= import("./envelope-hops.ts").then((all) => all.createModelHops(turn, io, onEntered)));
  return {
    admit: async (request, call) => (await load()).admit(request, call),
    enter: async (call, answer) => (await load()).enter(call, answer),
  };
}

function isHopFor(body: EventBody, turnId: string): boolean {
  return body.type === "hop.taken" && body.scope === "turn" && body.turnId === turnId;
}

/**
 * The sandbox with what was granted for the thread, or for this turn in an earlier process, within the current ceiling.
 */
export async function grantedSandbox(turn: TurnRequest): Promise<TurnSandbox> {
  const { history, sandboxContext } = turn;
  const { ceiling } = sandboxContext;
  let to = sandboxContext.envelope;
  for (const { body } of history) {
    if (body.type !== "hop.taken" || body.permissions === undefined) continue;
    if (body.scope !== "thread" && !isHopFor(body, turn.turnId)) continue;
    // Grants end when the thread gets another sandbox mode.
    if (body.to.id !== sandboxContext.envelope.id) continue;
    const wider = widenEnvelope(to, asRequest(body.permissions));
    if (ceiling?.exceededBy(wider) === undefined) to = wider;
  }
  return to === sandboxContext.envelope ? sandboxContext : { ...sandboxContext, ...(await sandboxContext.widen(to)) };
}

function asRequest(permissions: Permissions): HopRequest {
  return { kind: "wider", permissions };
}
