/**
 * The envelopes that exist for a workspace: built in, the user's, the project's. A name keeps what it promises: a file
 * with the name of another envelope can only narrow it. A project's own name is held to the ceiling of the thread, or to
 * the user's `edit` where there is none, so that a file that somebody else wrote gives nothing away.
 */
import { canonical, didYouMean, HeddleError, type Envelope, type HopEdge } from "@heddle/protocol";
import { withinCeiling } from "../calls/within-ceiling.ts";
import { BUILT_IN_ENVELOPES, builtInEnvelope } from "./built-in.ts";
import { resolveEnvelope, type Surroundings } from "./resolve.ts";
import type { EnvelopeSpec } from "./spec.ts";

export interface EnvelopeEntry {
  readonly spec: EnvelopeSpec;
  readonly source: "built-in" | "user" | "project";
  readonly file?: string | undefined;
  /** What has the same name one layer below. */
  readonly below?: EnvelopeEntry | undefined;
}

export interface Envelopes {
  readonly entries: ReadonlyMap<string, EnvelopeEntry>;
  /** Throws `envelope.unknown`, and `envelope.invalid` for a file that allows more than it may. */
  resolve(id: string, surroundings: Surroundings, ceiling?: Envelope): Envelope;
  /** Without the project's files: a ceiling is the owner's word. */
  resolveOwn(id: string, surroundings: Surroundings): Envelope;
  /** Throws `envelope.unknown`. */
  entry(id: string): EnvelopeEntry;
}

export function createEnvelopes(entries: ReadonlyMap<string, EnvelopeEntry>): Envelopes {
  function entry(id: string): EnvelopeEntry {
    const found = entries.get(id);
    if (found !== undefined) return found;
    const names = [...entries.keys()];
    const hint = didYouMean(id, names) || `; there are: ${names.join(", ")}`;
    throw new HeddleError("envelope.unknown", `there is no envelope ${JSON.stringify(id.slice(0, 100))}${hint}`);
  }
  return {
    entries,
    entry,
    resolveOwn(id, surroundings) {
      const own = ownOf(entry(id));
      if (own !== undefined) return resolveEntry(own, surroundings);
      throw new HeddleError("envelope.unknown", `the envelope "${id}" is the project's; a ceiling is one of your own`);
    },
    resolve(id, surroundings, ceiling) {
      const found = entry(id);
      const envelope = resolveEntry(found, surroundings);
      if (found.source !== "project" || found.below !== undefined) return envelope;
      const most = ceiling ?? resolveEntry(ownOf(entry("edit")) ?? BUILT_IN_EDIT, surroundings);
      requireNarrower(found, withinCeiling(envelope, most), most.id);
      requireNarrower(found, looseEdge(found.spec.exits), most.id);
      return envelope;
    },
  };
}

const BUILT_IN_EDIT: EnvelopeEntry = { spec: builtInEnvelope("edit"), source: "built-in" };

export function builtInEntries(): Map<string, EnvelopeEntry> {
  return new Map([...BUILT_IN_ENVELOPES].map(([id, spec]) => [id, { spec, source: "built-in" }]));
}

/** Each layer within the one below it. */
function resolveEntry(entry: EnvelopeEntry, surroundings: Surroundings): Envelope {
  const envelope = resolveEnvelope(entry.spec, surroundings);
  const { below } = entry;
  if (below === undefined) return envelope;
  requireNarrower(entry, withinCeiling(envelope, resolveEntry(below, surroundings)), below.spec.id);
  // A user may go where they like from their own envelopes.
  if (entry.source === "project") {
    requireNarrower(entry, wideEdge(entry.spec.exits, below.spec.exits), below.spec.id);
  }
  return envelope;
}

function ownOf(entry: EnvelopeEntry | undefined): EnvelopeEntry | undefined {
  if (entry?.source !== "project") return entry;
  return ownOf(entry.below);
}

function requireNarrower({ spec, source, file }: EnvelopeEntry, excess: string | undefined, most: string): void {
  if (excess === undefined) return;
  const who = source === "project" ? "the project's" : "your";
  const message = `${file ?? spec.id}: ${excess} is more than "${most}" allows; ${who} envelope "${spec.id}" can only narrow it`;
  throw new HeddleError("envelope.invalid", message, { details: { file: file ?? "", envelope: spec.id } });
}

/** An edge that the layer below does not have, or has with more conditions. */
function wideEdge(exits: readonly HopEdge[], below: readonly HopEdge[]): string | undefined {
  const wide = exits.find((edge) => edge.by.some((channel) => !below.some((known) => covers(known, edge, channel))));
  return wide === undefined ? undefined : `the edge to "${wide.to}"`;
}

function covers(known: HopEdge, edge: HopEdge, channel: HopEdge["by"][number]): boolean {
  if (known.to !== edge.to || !known.by.includes(channel)) return false;
  if (known.approval === "ask" && edge.approval === "auto") return false;
  if (edge.carry !== undefined && canonical(edge.carry) !== canonical(known.carry ?? {})) return false;
  const guards = new Set((edge.guards ?? []).map((guard) => canonical(guard)));
  return (known.guards ?? []).every((guard) => guards.has(canonical(guard)));
}

/** Of an envelope that only the project knows: a user decides about each way out. */
function looseEdge(exits: readonly HopEdge[]): string | undefined {
  const loose = exits.find(({ approval, by }) => approval === "auto" && by.some((channel) => channel !== "user"));
  return loose === undefined ? undefined : `the edge to "${loose.to}" without a question (approval: ask)`;
}
