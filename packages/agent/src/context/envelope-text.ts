/** What the model reads about the envelope that its thread has entered. */
import type { Envelope, EventOf } from "@heddle/protocol";

export function envelopeText({ id, tools, readRoots, writeRoots, network, sandbox }: Envelope): string {
  const writable = sandbox === "off" ? "everything" : writeRoots.join(", ") || "nothing";
  const reached = typeof network === "string" ? { none: "off", all: "on" }[network] : network.join(", ");
  return [
    `This thread is in the envelope "${id}" now.`,
    `tools: ${tools.join(", ")}`,
    ...(readRoots === undefined ? [] : [`may read: ${readRoots.join(", ")}`]),
    `may write: ${writable}`,
    `network: ${reached}`,
  ].join("\n");
}

/** After a compaction: what the turn was told at its beginning is not true any more. */
export function envelopeNote(turnId: string, envelope: Envelope): EventOf<"context.added"> {
  const text = envelopeText(envelope);
  return { type: "context.added", v: 1, turnId, source: "envelope", name: envelope.id, text };
}
