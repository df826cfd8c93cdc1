/**
 * A request for another envelope by name, whoever makes it: judged by the rules, then by the guards of its edge. What is
 * found is recorded with the hop, or with its refusal.
 */
import { envelopeHash } from "@heddle/tools";
import { BACK, edgeTo, judgeHop, type HopAsked, type HopStep } from "@heddle/tools/hops";
import type { Journal } from "@heddle/journal";
import {
  HeddleError,
  isHeddleError,
  reasonOf,
  type Envelope,
  type ErrorCode,
  type EventBody,
  type HopChannel,
  type HopEdge,
  type HopFacts,
  type SandboxLevel,
} from "@heddle/protocol";
import type { TurnSandbox } from "../runners/runner.ts";
import { filesOf } from "../turns/enter-envelope.ts";
import { runGuards, schemaProblem, type GateProof, type GuardContext, type Looked } from "./hop-guards.ts";

/** Where the thread is. */
export interface ThreadPlace {
  readonly envelope: Envelope;
  readonly stack: readonly HopStep[];
  readonly enteredAt: number;
  /** Tool calls since then. */
  readonly calls: number;
  /** Of the model, in the running turn. */
  readonly hopsThisTurn: number;
}

export interface Requesting extends Pick<
  GuardContext,
  "threadId" | "workspace" | "signal" | "findEvidence" | "duringTurn"
> {
  readonly channel: HopChannel;
  readonly place: ThreadPlace;
  /** As they would be entered now. */
  readonly envelopes: Pick<TurnSandbox, "named" | "ceiling">;
  /** The sandbox of the envelope that is left; opened only where a guard needs it. */
  readonly sandbox: () => Promise<Pick<GuardContext, "sandbox" | "environment">>;
}

export interface AllowedHop {
  readonly kind: "allowed";
  readonly to: Envelope;
  /** Absent: back. */
  readonly edge: HopEdge | undefined;
  readonly request: HopAsked;
  readonly facts: HopFacts;
  readonly proofs: readonly GateProof[];
}

export interface RefusedHop {
  readonly kind: "refused";
  readonly facts: HopFacts;
  readonly proofs?: readonly GateProof[];
  readonly failure: { readonly code: ErrorCode; readonly message: string };
}

export async function judgeRequest(request: HopAsked, asking: Requesting): Promise<AllowedHop | RefusedHop> {
  const { place, channel, envelopes } = asking;
  const isBack = request.to === BACK;
  const name = isBack ? (place.stack.at(-1)?.id ?? "") : request.to;
  const to = known(name, envelopes);
  const edge = isBack ? undefined : edgeTo(place.envelope, name, channel);
  const facts = { ...factsOf(request, channel), to: name || BACK };
  const verdict = judgeHop({
    from: place.envelope,
    to,
    ceiling: envelopes.ceiling?.envelope,
    edge,
    request,
    channel,
    stack: place.stack,
    hopsThisTurn: place.hopsThisTurn,
    problemOf: (value, schema) => problemOf(value, schema),
  });
  if (verdict.kind === "refused") {
    return { kind: "refused", facts, failure: { code: verdict.code, message: verdict.message } };
  }
  const { guards = [] } = edge ?? {};
  const { findings, proofs } = guards.length === 0 ? NOTHING_LOOKED_AT : await look(guards, request, asking);
  const found = { ...facts, guards: [...findings] };
  const missed = findings.find(({ isMet }) => !isMet);
  if (missed !== undefined) {
    const message = `the guard "${missed.kind}" of the hop to ${name} is not met: ${missed.found}`;
    return { kind: "refused", facts: found, proofs, failure: { code: "hop.guard-failed", message } };
  }
  // Judged above: without it the hop is refused.
  return { kind: "allowed", to: to ?? place.envelope, edge, request, facts: found, proofs };
}

const NOTHING_LOOKED_AT: Looked = { findings: [], proofs: [] };

/** Throws where the thread is in none: it has had no turn since envelopes are recorded. */
export async function placeOf(
  { threads }: Pick<Journal, "threads">,
  threadId: string,
  turnId?: string,
): Promise<ThreadPlace> {
  const row = await threads.envelope(threadId);
  if (row === undefined || row.isLeft) {
    throw new HeddleError("usage.invalid", `thread ${threadId} is in no envelope yet; its next turn enters one`);
  }
  const { envelope, stack, enteredAt, calls, modelHops } = row;
  const hopsThisTurn = modelHops !== undefined && modelHops.turnId === turnId ? modelHops.count : 0;
  return { envelope, stack, enteredAt, calls, hopsThisTurn };
}

/** undefined: there is none of that name. */
function known(name: string, envelopes: Requesting["envelopes"]): Envelope | undefined {
  try {
    return envelopes.named(name);
  } catch (error) {
    if (isHeddleError(error) && error.code === "envelope.unknown") return undefined;
    throw error;
  }
}

export function factsOf({ to, reason, carry }: HopAsked, channel: HopChannel): HopFacts {
  return { to, channel, reason, ...(carry === undefined ? {} : { carry }), guards: [] };
}

async function look(
  guards: NonNullable<HopEdge["guards"]>,
  { to, outcome }: HopAsked,
  { place, sandbox, channel, ...asking }: Requesting,
): Promise<Looked> {
  const { envelope, enteredAt } = place;
  const inside = await sandbox();
  return runGuards(guards, { ...asking, ...inside, envelope, enteredAt, outcome, hop: { to, channel } });
}

/** A schema that cannot be checked fits nothing. */
function problemOf(value: unknown, schema: Readonly<Record<string, unknown>>): string | undefined {
  try {
    return schemaProblem(value, schema, "carry");
  } catch (error) {
    return reasonOf(error);
  }
}

interface Entering {
  readonly journal: Pick<Journal, "keepManifest">;
  readonly workspace: string;
  readonly signal: AbortSignal;
  readonly place: ThreadPlace;
  readonly sandboxLevel: SandboxLevel;
  readonly duringTurn?: string | undefined;
}

/** In one append: the thread is in the one envelope or in the other, never in between. */
export async function hopEvents(hop: AllowedHop, entering: Entering): Promise<EventBody[]> {
  const { journal, place, sandboxLevel, duringTurn } = entering;
  const cause = hop.edge === undefined ? "back" : "hop";
  const during = duringTurn === undefined ? {} : { duringTurn };
  const { outcome } = hop.request;
  return [
    ...hop.proofs,
    {
      type: "envelope.left",
      v: 1,
      ...during,
      cause,
      envelopeHash: envelopeHash(place.envelope),
      calls: place.calls,
      ...(outcome === undefined ? {} : { outcome }),
      ...(await filesOf(journal, { ...entering, envelope: place.envelope })),
    },
    {
      type: "envelope.entered",
      v: 1,
      ...during,
      cause,
      envelope: hop.to,
      envelopeHash: envelopeHash(hop.to),
      sandboxLevel,
      depth: place.stack.length + (cause === "back" ? -1 : 1),
      hop: hop.facts,
      ...(await filesOf(journal, { ...entering, envelope: hop.to })),
    },
  ];
}

export function refusedEvents(
  { facts, failure, proofs = [] }: RefusedHop,
  from: Envelope,
  duringTurn?: string,
): EventBody[] {
  const during = duringTurn === undefined ? {} : { duringTurn };
  return [...proofs, { type: "envelope.hop-refused", v: 1, ...during, from: from.id, hop: facts, failure }];
}
