/**
 * Whether a thread may go from one envelope to another by name. Pure: the caller looks up the envelopes, runs the guards and
 * asks the user. Who asks is the channel the request came by; nothing in the request changes it.
 *
 *   target known ─▶ another one ─▶ edge ─▶ channel ─▶ count ─▶ ceiling ─▶ carry ─▶ (guards ─▶ approval ─▶ leave and enter)
 */
import { canonical, type Envelope, type ErrorCode, type HopChannel, type HopEdge } from "@heddle/protocol";
import { withinCeiling } from "./within-ceiling.ts";

/** Enough for every plan; a chain that is longer goes in circles. */
export const MAX_HOP_DEPTH = 16;
/** Of the model in one turn, where the envelope names no other number. */
export const DEFAULT_HOPS_PER_TURN = 4;
/** What a hop carries is shown to the model again with every request. */
export const MAX_CARRY_BYTES = 32 * 1024;
export const MAX_HOP_REASON_CHARS = 2000;

/** The name by which a request goes to the envelope before this one. */
export const BACK = "back";

export interface HopAsked {
  /** The name of an envelope, or `back`. */
  readonly to: string;
  readonly reason: string;
  readonly carry?: Readonly<Record<string, unknown>> | undefined;
  /** What the envelope is left with. */
  readonly outcome?: unknown;
}

/** An envelope that can be gone back to, and by which channel it was left. */
export interface HopStep {
  readonly id: string;
  readonly hash: string;
  /** Absent: unknown, as if a user had left it. */
  readonly channel?: HopChannel | undefined;
}

export interface HopQuestion {
  readonly from: Envelope;
  /** undefined: no envelope has the name. For `back`: the last of the stack. */
  readonly to: Envelope | undefined;
  /** undefined: the thread has none. */
  readonly ceiling: Envelope | undefined;
  /** undefined: there is none; `back` needs none. */
  readonly edge: HopEdge | undefined;
  readonly request: HopAsked;
  readonly channel: HopChannel;
  /** The newest is the last. */
  readonly stack: readonly HopStep[];
  /** Of the model. */
  readonly hopsThisTurn: number;
  /** What is wrong with the value by a JSON Schema; undefined: nothing. */
  readonly problemOf: (value: unknown, schema: Readonly<Record<string, unknown>>) => string | undefined;
}

export type HopCode = Extract<ErrorCode, `hop.${string}`> | "ceiling.exceeded";

export type HopVerdict =
  | { readonly kind: "allowed" }
  | { readonly kind: "refused"; readonly code: HopCode; readonly message: string };

/** The edge for this channel; where there is none, one for others, so that the refusal can name them. */
export function edgeTo({ exits = [] }: Envelope, to: string, channel: HopChannel): HopEdge | undefined {
  const edges = exits.filter((edge) => edge.to === to);
  return edges.find(({ by }) => by.includes(channel)) ?? edges[0];
}

export function judgeHop(question: HopQuestion): HopVerdict {
  const { to, outcome } = question.request;
  if (isLarge(outcome)) return refused("hop.carry-invalid", `an outcome has at most ${MAX_CARRY_BYTES} bytes`);
  return to === BACK ? judgeBack(question) : judgeForward(question);
}

function judgeForward(question: HopQuestion): HopVerdict {
  const { from, to, edge, request, channel, stack } = question;
  const name = shown(request.to);
  if (request.to === from.id) return refused("hop.same-envelope", `the thread is in ${name} already`);
  if (to === undefined) {
    return refused("hop.unknown-envelope", `there is no envelope ${name}; heddle envelopes lists them`);
  }
  if (edge === undefined) return refused("hop.no-edge", `no edge leads from ${from.id} to ${name}; ${exitsOf(from)}`);
  if (!edge.by.includes(channel)) {
    const message = `the hop from ${from.id} to ${name} is for ${edge.by.join(" or ")}, and this one came from ${channel}`;
    return refused("hop.not-authorized", message);
  }
  if (stack.length >= MAX_HOP_DEPTH) {
    return refused("hop.too-many", `${MAX_HOP_DEPTH} hops lead here already; go back before another one`);
  }
  return tooOften(question) ?? tooWide(to, question) ?? badCarry(edge, question) ?? { kind: "allowed" };
}

/**
 * Back leads where the thread has been, so it needs no edge. But what one channel has left, a lower one does not enter again,
 * unless it is inside the envelope that the thread is in: a model cannot undo that its user narrowed it.
 */
function judgeBack(question: HopQuestion): HopVerdict {
  const { from, to, request, channel, stack } = question;
  const step = stack.at(-1);
  if (step === undefined) return refused("hop.no-edge", `no hop led to ${from.id}, so there is no way back`);
  if (to === undefined) {
    return refused("hop.unknown-envelope", `the envelope ${shown(step.id)} does not exist any more`);
  }
  const isNarrower = withinCeiling(to, from) === undefined;
  if (!isNarrower && RANK[channel] < RANK[step.channel ?? "user"]) {
    const message = `a ${step.channel ?? "user"} left ${step.id}, so a ${channel} cannot go back there`;
    return refused("hop.not-authorized", message);
  }
  if (hasEntries(request.carry)) return refused("hop.carry-invalid", "a hop back carries nothing");
  return tooOften(question) ?? tooWide(to, question) ?? { kind: "allowed" };
}

const RANK: Readonly<Record<HopChannel, number>> = { model: 0, task: 1, user: 2 };

function tooOften({ from, channel, hopsThisTurn }: HopQuestion): HopVerdict | undefined {
  if (channel !== "model") return undefined;
  const most = from.limits?.hopsPerTurn ?? DEFAULT_HOPS_PER_TURN;
  if (hopsThisTurn < most) return undefined;
  return refused("hop.too-many", `this turn has hopped ${hopsThisTurn} times, and ${from.id} allows ${most}`);
}

function tooWide(to: Envelope, { ceiling }: HopQuestion): HopVerdict | undefined {
  const above = ceiling === undefined ? undefined : withinCeiling(to, ceiling);
  if (ceiling === undefined || above === undefined) return undefined;
  const message = `${to.id} is above the ceiling of this thread ("${ceiling.id}"): ${above}; only the owner can raise it`;
  return refused("ceiling.exceeded", message);
}

function badCarry({ carry: schema }: HopEdge, { request, problemOf }: HopQuestion): HopVerdict | undefined {
  const { carry = {} } = request;
  if (schema === undefined) {
    return hasEntries(carry) ? refused("hop.carry-invalid", "this hop carries nothing") : undefined;
  }
  if (isLarge(carry)) return refused("hop.carry-invalid", `a hop carries at most ${MAX_CARRY_BYTES} bytes`);
  const problem = problemOf(carry, schema);
  return problem === undefined ? undefined : refused("hop.carry-invalid", `carry does not fit: ${problem}`);
}

function isLarge(value: unknown): boolean {
  return value !== undefined && Buffer.byteLength(canonical(value)) > MAX_CARRY_BYTES;
}

function hasEntries(carry: HopAsked["carry"]): boolean {
  return carry !== undefined && Object.keys(carry).length > 0;
}

function exitsOf({ exits = [] }: Envelope): string {
  return exits.length === 0 ? "none leads out" : `there are: ${exits.map(({ to }) => to).join(", ")}`;
}

const MAX_SHOWN_CHARS = 100;

function shown(name: string): string {
  return name.length <= MAX_SHOWN_CHARS ? name : `${name.slice(0, MAX_SHOWN_CHARS)}…`;
}

function refused(code: HopCode, message: string): HopVerdict {
  return { kind: "refused", code, message };
}
