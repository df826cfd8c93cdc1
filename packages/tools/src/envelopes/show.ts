/** Envelopes for people and programs: as data, and their edges as a drawing. All from the one registry. */
import type { HopEdge } from "@heddle/protocol";
import type { EnvelopeEntry, Envelopes } from "./registry.ts";
import { sandboxModeOf, type EnvelopeSpec } from "./spec.ts";

export interface EnvelopeView {
  readonly id: string;
  readonly description: string;
  readonly source: EnvelopeEntry["source"];
  readonly file?: string;
  /** What clients are told that know nothing but sandbox modes. */
  readonly sandboxMode: string;
  readonly tools: readonly string[];
  readonly effects: readonly string[];
  /** Absent: everything that is not masked. */
  readonly read?: readonly string[];
  /** As it is written: `.` is the workspace, `name?` counts where it exists. */
  readonly write: readonly string[];
  readonly masked: readonly string[];
  /** `settings`: as those of the turn say. */
  readonly network: NonNullable<EnvelopeSpec["network"]> | "settings";
  readonly sandbox: EnvelopeSpec["sandbox"];
  readonly approval: NonNullable<EnvelopeSpec["approval"]> | "settings";
  readonly exits: readonly HopEdge[];
  readonly limits: NonNullable<EnvelopeSpec["limits"]>;
  readonly outcome?: Readonly<Record<string, unknown>>;
  readonly manifest?: true;
}

export function viewEnvelopes({ entries }: Envelopes): readonly EnvelopeView[] {
  return [...entries.values()].map(viewEnvelope);
}

export function viewEnvelope({ spec, source, file }: EnvelopeEntry): EnvelopeView {
  return {
    id: spec.id,
    description: spec.description,
    source,
    ...(file === undefined ? {} : { file }),
    sandboxMode: sandboxModeOf(spec),
    tools: [...spec.tools, ...(spec.whenAsked?.tools ?? []).filter((tool) => !spec.tools.includes(tool))],
    effects: spec.effects,
    ...(spec.read === undefined ? {} : { read: spec.read }),
    write: spec.write,
    masked: spec.masked ?? [],
    network: spec.network ?? "settings",
    sandbox: spec.sandbox,
    approval: spec.approval ?? "settings",
    exits: spec.exits,
    limits: spec.limits ?? {},
    ...(spec.outcome === undefined ? {} : { outcome: spec.outcome }),
    ...(spec.manifest === true ? { manifest: true } : {}),
  };
}

/** Mermaid: a line for every way from one envelope to another, with who takes it and on which conditions. */
export function drawEnvelopes(envelopes: readonly Pick<EnvelopeView, "id" | "exits">[]): string {
  const lines = envelopes.flatMap(({ id, exits }) => {
    const targets = [...new Set(exits.map(({ to }) => to))];
    return targets.map(
      (to) =>
        `  ${arrow(
          id,
          to,
          exits.filter((edge) => edge.to === to),
        )}`,
    );
  });
  return ["flowchart LR", ...lines, ""].join("\n");
}

function arrow(from: string, to: string, edges: readonly HopEdge[]): string {
  const isFree = edges.some(({ by, approval }) => by.includes("model") && approval === "auto");
  const words = edges.map(({ by, approval, guards = [] }) => {
    const who = by.length === CHANNELS ? "all" : by.join(", ");
    return `${who}${approval === "ask" ? " ask" : ""}${guards.length === 0 ? "" : `, ${guards.length} guards`}`;
  });
  return `${from} ${isFree ? "-->" : "-.->"}|${words.join("; ")}| ${to}`;
}

const CHANNELS = 3;
