/** The envelope of a sandbox mode, an envelope with fewer tools or more permissions, and the hash of one. */
import { createHash } from "node:crypto";
import { canonical, type Effect, type Envelope, type Gate, type HopRequest, type SandboxMode } from "@heddle/protocol";
import { builtInEnvelope, ENVELOPE_OF_MODE } from "../envelopes/built-in.ts";
import { resolveEnvelope, type Surroundings } from "../envelopes/resolve.ts";
import { asCanonical, matchesName } from "../mcp/names.ts";

export interface EnvelopeOptions extends Surroundings {
  readonly mode: SandboxMode;
}

export function envelopeFor({ mode, ...surroundings }: EnvelopeOptions): Envelope {
  return resolveEnvelope(builtInEnvelope(ENVELOPE_OF_MODE[mode]), surroundings);
}

/** The same envelope with only these tools; `…*` stands for all names with that prefix. */
export function narrowEnvelope(envelope: Envelope, allowed: readonly string[]): Envelope {
  const isHere = (name: string): boolean => envelope.tools.some((known) => matchesName(known, name));
  return { ...envelope, tools: [...new Set(allowed.map(asCanonical).filter(isHere))] };
}

/** The envelope with a hop applied. Permissions are added, tools are not. */
export function widenEnvelope(envelope: Envelope, request: HopRequest): Envelope {
  const everything: readonly Effect[] = ["read", "write", "exec", "net"];
  const withEffects = (more: readonly Effect[]): Effect[] => [...new Set([...envelope.effects, ...more])];
  if (request.kind === "outside") {
    const effects = withEffects(everything);
    const { readRoots: _, ...rest } = envelope;
    return { ...rest, id: "full", effects, writeRoots: ["/"], network: "all", sandbox: "off" };
  }
  const { read, write, network } = request.permissions;
  const { readRoots } = envelope;
  return {
    ...envelope,
    effects: withEffects([...(write.length === 0 ? [] : ["write" as const]), ...(network ? ["net" as const] : [])]),
    ...(readRoots === undefined ? {} : { readRoots: [...new Set([...readRoots, ...read])] }),
    writeRoots: [...new Set([...envelope.writeRoots, ...write])],
    network: network ? "all" : envelope.network,
  };
}

export function envelopeHash(envelope: Envelope): string {
  return createHash("sha256").update(canonical(envelope)).digest("hex");
}

export function gateHash({ name, guards }: Gate): string {
  return createHash("sha256").update(canonical({ name, guards })).digest("hex");
}
