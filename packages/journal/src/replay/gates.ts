/**
 * The proofs of gates on record, and whether a hop whose edge names a gate has its own: of the gate as the edge declares it,
 * looked at in the envelope that is left, since it was entered, with every guard met.
 */
import { factsIn, listIn, textIn, type Entry, type Facts } from "./facts.ts";
import type { Report } from "./findings.ts";
import { gateOf, type Edge, type Spec } from "./spec.ts";

interface Proof {
  readonly hash: string;
  readonly envelopeHash: string;
  readonly isPassed: boolean;
}

interface HopThrough {
  readonly edge: Edge;
  readonly from: Spec;
  readonly hop: Facts;
}

export class GateProofs {
  readonly #report: Report;
  readonly #since = new Map<string, Proof>();

  constructor(report: Report) {
    this.#report = report;
  }

  take(entry: Entry, body: Facts): void {
    const gate = gateOf(factsIn(body, "gate"));
    const path = listIn(body, "path");
    const isWhole = path.length === gate.guards && path.every((one) => one["isMet"] === true);
    const isPassed = entry.type === "gate.passed";
    const hash = textIn(body, "gateHash") ?? "";
    if (hash !== gate.hash)
      this.#report("gate_unproven", `the gate "${gate.name}" is not the one that its hash names`, entry);
    else if (isPassed !== isWhole)
      this.#report("gate_unproven", `the proof of the gate "${gate.name}" contradicts what it says`, entry);
    this.#since.set(textIn(body, "gateId") ?? "", {
      hash: gate.hash,
      envelopeHash: textIn(body, "envelopeHash") ?? "",
      isPassed: isPassed && isWhole && hash === gate.hash,
    });
  }

  require(entry: Entry, { edge, from, hop }: HopThrough): void {
    const named = listIn(hop, "guards").flatMap((finding) => textIn(finding, "gateId") ?? []);
    const proofs = named.map((id) => this.#since.get(id)).filter((proof) => proof?.envelopeHash === from.hash);
    for (const { name, hash } of edge.gates)
      if (!proofs.some((proof) => proof?.isPassed === true && proof.hash === hash))
        this.#report(
          "gate_unproven",
          `the way to "${edge.to}" is through the gate "${name}", and no proof of it is on record`,
          entry,
        );
  }

  /** Another envelope was entered: what was proven before counts no more. */
  forget(): void {
    this.#since.clear();
  }
}
