/**
 * The envelopes of a user and of a project, from their folders, over the built-in ones. Read when a turn begins and kept
 * for it: what an agent writes there during the turn counts for nothing in it, and sandboxed agents cannot write there.
 */
import { join } from "node:path";
import { specProblems } from "./check-spec.ts";
import { gatesBeside, readGates, withGates, type Gates } from "./gates.ts";
import { builtInEntries, createEnvelopes, type EnvelopeEntry, type Envelopes } from "./registry.ts";
import { mergedSpec, readSpec, type ReadSpec } from "./spec-file.ts";
import type { EnvelopeSpec } from "./spec.ts";
import { readYamlFile, readYamlFolder } from "./yaml-folder.ts";

export { withinCeiling } from "../calls/within-ceiling.ts";
export { gatesBeside, readGates } from "./gates.ts";
export type { Envelopes } from "./registry.ts";
export { drawEnvelopes, viewEnvelope, viewEnvelopes, type EnvelopeView } from "./show.ts";

export interface EnvelopeFolders {
  readonly user: string;
  readonly project: string | undefined;
}

export function envelopeFolders(home: string, workspace: string | undefined): EnvelopeFolders {
  return {
    user: join(home, "envelopes"),
    project: workspace === undefined ? undefined : join(workspace, ".heddle", "envelopes"),
  };
}

export function readEnvelopes(folders: EnvelopeFolders): Envelopes {
  const own = readGates(gatesBeside({ user: folders.user, project: undefined }));
  const user = layered(builtInEntries(), { files: readFolder(folders.user), source: "user", gates: own });
  if (folders.project === undefined || folders.project === folders.user) return createEnvelopes(user);
  const gates = readGates(gatesBeside(folders));
  return createEnvelopes(layered(user, { files: readFolder(folders.project), source: "project", gates }));
}

/** One file, as if it were the user's: what is wrong with it is thrown. */
export function checkEnvelopeFile(file: string, folders: EnvelopeFolders): EnvelopeSpec {
  const { id, text } = readYamlFile(file, "envelope");
  const read = readSpec(text, { file, id });
  const gates = readGates(gatesBeside({ user: folders.user, project: undefined }));
  const known = layered(builtInEntries(), { files: readFolder(folders.user), source: "user", gates });
  const { entries } = createEnvelopes(layered(known, { files: [read], source: "user", gates }));
  return entries.get(id)?.spec ?? mergedSpec(read, undefined);
}

function readFolder(folder: string | undefined): readonly ReadSpec[] {
  return readYamlFolder(folder, "envelope").map(({ id, file, text }) => readSpec(text, { file, id }));
}

interface Layer {
  readonly files: readonly ReadSpec[];
  readonly source: "user" | "project";
  /** Those that its envelopes may name. */
  readonly gates: Gates;
}

/** `extends` names another file of the layer, or what lies below; its own name is what lies below. */
function layered(
  below: ReadonlyMap<string, EnvelopeEntry>,
  { files, source, gates }: Layer,
): Map<string, EnvelopeEntry> {
  const own = new Map<string, ReadSpec>();
  for (const read of files) {
    const twin = own.get(read.id);
    if (twin !== undefined) read.refuse([], `"${read.id}" is also in ${twin.file}; keep one of them`);
    own.set(read.id, read);
  }
  const merged = new Map<string, EnvelopeSpec>();
  const merge = (read: ReadSpec, above: readonly string[]): EnvelopeSpec => {
    const known = merged.get(read.id);
    if (known !== undefined) return known;
    const spec = mergedSpec(read, baseOf(read, above));
    merged.set(read.id, spec);
    return spec;
  };
  const baseOf = (read: ReadSpec, above: readonly string[]): EnvelopeSpec | undefined => {
    const name = read.extends;
    if (name === undefined) return undefined;
    const chain = [...above, read.id];
    const next = name === read.id ? undefined : own.get(name);
    if (next !== undefined && chain.includes(name))
      return read.refuse(["extends"], `envelopes extend each other in a circle: ${[...chain, name].join(" → ")}`);
    if (next !== undefined) return merge(next, chain);
    return below.get(name)?.spec ?? read.refuse(["extends"], `there is no envelope "${name}" to begin with`);
  };
  const entries = new Map(below);
  for (const read of own.values()) {
    const spec = withGates(merge(read, []), { gates, read });
    entries.set(read.id, { spec, source, file: read.file, below: below.get(read.id) });
  }
  for (const read of own.values()) {
    const spec = merged.get(read.id);
    const [problem] = spec === undefined ? [] : specProblems(spec, (id) => entries.has(id));
    if (problem !== undefined)
      read.refuse(
        problem.path.filter((part) => part !== undefined),
        problem.message,
      );
  }
  return entries;
}
