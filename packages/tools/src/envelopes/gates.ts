/**
 * Gates: named sequences of guards, of a user and of a project, as YAML beside their envelopes. A project adds gates of its
 * own names; a name that is the user's is refused there, so that no file of a project weakens what the user demands.
 */
import { dirname, join } from "node:path";
import { didYouMean, Gate, HeddleError, type HopEdge, type HopGuard } from "@heddle/protocol";
import { z } from "zod";
import type { EnvelopeSpec } from "./spec.ts";
import type { ReadSpec } from "./spec-file.ts";
import { readYaml } from "./yaml-file.ts";
import { readYamlFolder, type NamedText } from "./yaml-folder.ts";

interface KnownGate {
  readonly gate: Gate;
  readonly description: string;
  readonly source: "user" | "project";
  readonly file: string;
}

export interface Gates {
  readonly known: ReadonlyMap<string, KnownGate>;
  /** Throws `gate.unknown`. */
  named(name: string): KnownGate;
}

interface GateFolders {
  readonly user: string;
  readonly project: string | undefined;
}

/** Of the folders of envelopes. */
export function gatesBeside({ user, project }: GateFolders): GateFolders {
  const beside = (folder: string): string => join(dirname(folder), "gates");
  return { user: beside(user), project: project === undefined ? undefined : beside(project) };
}

export const GateFile = z.strictObject({ description: z.string().max(500).optional(), guards: Gate.shape.guards });

export function readGates({ user, project }: GateFolders): Gates {
  const known = new Map<string, KnownGate>();
  const add = (source: KnownGate["source"]) => (named: NamedText) => {
    const { id: name, file, text } = named;
    const schema = GateFile;
    const { data, refuse } = readYaml(text, { file, code: "gate.invalid", schema, known: Object.keys(schema.shape) });
    const twin = known.get(name);
    if (twin !== undefined) refuse([], `the gate "${name}" is ${twin.file}; choose another name`);
    known.set(name, { gate: { name, guards: data.guards }, description: data.description ?? "", source, file });
  };
  readYamlFolder(user, "gate").forEach(add("user"));
  if (project !== user) readYamlFolder(project, "gate").forEach(add("project"));
  return {
    known,
    named(name) {
      const found = known.get(name);
      if (found !== undefined) return found;
      throw new HeddleError("gate.unknown", noGate(name, known));
    },
  };
}

function noGate(name: string, known: Gates["known"]): string {
  const names = [...known.keys()];
  const there = names.length === 0 ? "; there are none yet" : `; there are: ${names.join(", ")}`;
  return `there is no gate ${JSON.stringify(name.slice(0, 100))}${didYouMean(name, names) || there}`;
}

/** The spec with the guards of the gates that its edges name, so that what a thread is in holds them. */
export function withGates(
  spec: EnvelopeSpec,
  { gates, read }: { readonly gates: Gates; readonly read: Pick<ReadSpec, "exits" | "refuse"> },
): EnvelopeSpec {
  const { exits: written = [], refuse } = read;
  const isOwn = (guard: HopGuard): boolean => guard.kind === "gate" && guard.guards !== undefined;
  const misplaced = written.findIndex(({ guards = [] }) => guards.some(isOwn));
  if (misplaced >= 0) refuse(["exits", misplaced], "the guards of a gate are in its own file; name the gate alone");
  const filled = (edge: HopEdge, index: number): HopEdge => {
    const { guards } = edge;
    if (guards?.some(({ kind }) => kind === "gate") !== true) return edge;
    const whole = (guard: HopGuard): HopGuard => {
      if (guard.kind !== "gate") return guard;
      const { name } = guard;
      const found = gates.known.get(name);
      if (found !== undefined) return { kind: "gate", name, guards: found.gate.guards };
      return refuse(["exits", index], noGate(name, gates.known));
    };
    return { ...edge, guards: guards.map(whole) };
  };
  return { ...spec, exits: spec.exits.map(filled) };
}
