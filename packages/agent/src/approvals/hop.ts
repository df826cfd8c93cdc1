/**
 * Hops of a turn: checked changes of its envelope that the user allows. Each is an event before anything runs in the wider
 * envelope, none goes above the thread's ceiling, and each ends with its scope.
 *
 *   request ─▶ above the ceiling, or nobody to ask ─▶ hop.refused
 *        └▶ allowed ─▶ hop.taken ─▶ call:   this one runs in another sandbox
 *                                   turn:   the calls that follow do, until the turn ends
 *                                   thread: its later turns too, while the thread keeps its sandbox mode
 */
import { HeddleError, type Envelope, type EventBody, type HopRequest, type Permissions } from "@heddle/protocol";
import { aboveCeiling, envelopeFor, envelopeHash, widenEnvelope, type Hops, type SandboxContext } from "@heddle/tools";
import type { TurnSandbox, TurnRequest } from "../runners/runner.ts";
import type { PolicyIo } from "../turns/policy.ts";

export interface TurnHops extends Hops {
  /** The sandbox of the next call. */
  readonly current: SandboxContext;
}

export interface OpenHops extends TurnHops {
  /** At the end of the turn: closes sandboxes that were opened for the turn, with everything that still runs there. */
  end(): Promise<void>;
}

export function createHops(turn: TurnRequest, io: Pick<PolicyIo, "record">): OpenHops {
  const { turnId, sandboxContext } = turn;
  const ceiling = ceilingOf(turn);
  let current: SandboxContext = sandboxContext;
  /** Envelopes of this turn, one after the other; each includes those before it. */
  const entered: Envelope[] = [];
  let isForTurn = turn.history.some(({ body }) => isHopFor(body, turnId));
  if (isForTurn) entered.push(sandboxContext.envelope);
  return {
    get current() {
      return current;
    },
    check(request) {
      requireBelow(widenEnvelope(current.envelope, request), ceiling);
    },
    async take({ callId, request, scope, by }) {
      const from = envelopeHash(current.envelope);
      const to = widenEnvelope(current.envelope, request);
      const toHash = envelopeHash(to);
      if (toHash === from) return current;
      requireBelow(to, ceiling);
      const wider = await sandboxContext.widen(to);
      const more = request.kind === "wider" ? { permissions: request.permissions } : {};
      const hop = { turnId, callId, scope, from, to, toHash, sandboxLevel: wider.sandbox.level, ...more };
      await io.record([{ type: "hop.taken", v: 1, ...hop }], by);
      if (scope === "call") return wider;
      entered.push(to);
      isForTurn ||= scope === "turn";
      current = wider;
      return wider;
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

function isHopFor(body: EventBody, turnId: string): boolean {
  return body.type === "hop.taken" && body.scope === "turn" && body.turnId === turnId;
}

/** Refuses a turn whose envelope is above its thread's ceiling. */
export function requireWithinCeiling(turn: Pick<TurnRequest, "settings" | "workspace">, envelope: Envelope): void {
  if (turn.settings.ceiling !== undefined) requireBelow(envelope, ceilingOf({ ...turn, sandboxContext: { envelope } }));
}

/**
 * The sandbox with what was granted for the thread, or for this turn in an earlier process, within the current ceiling.
 */
export async function grantedSandbox(turn: TurnRequest): Promise<TurnSandbox> {
  const { history, sandboxContext } = turn;
  const ceiling = ceilingOf(turn);
  let to = sandboxContext.envelope;
  for (const { body } of history) {
    if (body.type !== "hop.taken" || body.permissions === undefined) continue;
    if (body.scope !== "thread" && !isHopFor(body, turn.turnId)) continue;
    // Grants end when the thread gets another sandbox mode.
    if (body.to.id !== sandboxContext.envelope.id) continue;
    const wider = widenEnvelope(to, asRequest(body.permissions));
    if (aboveCeiling(wider, ceiling) === undefined) to = wider;
  }
  return to === sandboxContext.envelope ? sandboxContext : { ...sandboxContext, ...(await sandboxContext.widen(to)) };
}

function asRequest(permissions: Permissions): HopRequest {
  return { kind: "wider", permissions };
}

function ceilingOf({
  settings,
  workspace,
  sandboxContext,
}: Pick<TurnRequest, "settings" | "workspace"> & { readonly sandboxContext: Pick<TurnSandbox, "envelope"> }): Envelope {
  const { ceiling: mode = "danger-full-access", writableRoots, networkAccess, approvalPolicy: approval } = settings;
  const { masked } = sandboxContext.envelope;
  return envelopeFor({ mode, workspace, writableRoots, networkAccess, approval, masked });
}

function requireBelow(envelope: Envelope, ceiling: Envelope): void {
  const above = aboveCeiling(envelope, ceiling);
  if (above === undefined) return;
  throw new HeddleError(
    "ceiling.exceeded",
    `${above} is above the ceiling of this thread ("${ceiling.id}"), which only its owner can raise (sandbox_ceiling)`,
  );
}
