/** The YAML of one envelope. The schema is closed; a tool that does not exist is a problem with its line too. */
import { ApprovalPolicy, Effect, EnvelopeLimits, HopEdge, Network } from "@heddle/protocol";
import { z } from "zod";
import { MIN_MEMORY_BYTES, MIN_PROCESSES } from "../sandbox/limits.ts";
import type { EnvelopeSpec } from "./spec.ts";
import { readYaml, type Refuse } from "./yaml-file.ts";

export const ENVELOPE_NAME = /^[a-z][a-z0-9-]{0,62}$/;

const Folder = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^(?!.*(^|\/)\.\.(\/|$))[^\0]+$/, "must be a folder without ..");

export const SpecFile = z.strictObject({
  id: z.string().regex(ENVELOPE_NAME, "must be a short name in lower case").optional(),
  description: z.string().max(500).optional(),
  extends: z.string().optional(),
  tools: z.array(z.string()).max(500).optional(),
  effects: z.array(Effect).optional(),
  read: z.array(Folder).max(100).optional(),
  write: z.array(Folder).max(100).optional(),
  masked: z.array(Folder).max(100).optional(),
  network: Network.optional(),
  sandbox: z.enum(["required", "off"]).optional(),
  approval: ApprovalPolicy.optional(),
  exits: z.array(HopEdge).max(50).optional(),
  limits: EnvelopeLimits.extend({
    processes: z.int().min(MIN_PROCESSES).optional(),
    memoryBytes: z.int().min(MIN_MEMORY_BYTES).optional(),
  }).optional(),
  outcome: z.record(z.string(), z.unknown()).optional(),
  manifest: z.literal(true).optional(),
});
type SpecFile = z.infer<typeof SpecFile>;

/** A file as it was read, before the one it extends is known. */
export interface ReadSpec extends SpecFile {
  readonly id: string;
  readonly file: string;
  /** Throws `envelope.invalid` with the line of a key, or of an entry of its list. */
  readonly refuse: Refuse;
}

export function readSpec(text: string, { file, id }: { readonly file: string; readonly id: string }): ReadSpec {
  const { data, refuse } = readYaml(text, {
    file,
    code: "envelope.invalid",
    schema: SpecFile,
    known: Object.keys(SpecFile.shape),
  });
  if (data.id !== undefined && data.id !== id) refuse(["id"], `the id is the file's name, "${id}"`);
  return { ...data, id, file, refuse };
}

/** Keys of the file over those of the spec it extends; masks are added, limits merge key by key. */
export function mergedSpec(read: ReadSpec, base: EnvelopeSpec | undefined): EnvelopeSpec {
  for (const key of ["tools", "effects"] as const) {
    if (base === undefined && read[key] === undefined)
      read.refuse([], `"${key}" is missing; name them, or the envelope to begin with (extends)`);
  }
  const isOwnSet = read.tools !== undefined || read.effects !== undefined;
  const masked = [...(base?.masked ?? []), ...(read.masked ?? [])];
  const limits = { ...base?.limits, ...read.limits };
  return {
    id: read.id,
    description: read.description ?? base?.description ?? "",
    tools: read.tools ?? base?.tools ?? [],
    effects: read.effects ?? base?.effects ?? [],
    whenAsked: isOwnSet ? undefined : base?.whenAsked,
    addsEffects: read.effects === undefined ? base?.addsEffects : undefined,
    read: read.read ?? base?.read,
    write: read.write ?? base?.write ?? [],
    ...(masked.length === 0 ? {} : { masked }),
    network: read.network ?? (base === undefined ? "none" : base.network),
    sandbox: read.sandbox ?? base?.sandbox ?? "required",
    approval: read.approval ?? base?.approval,
    exits: read.exits ?? base?.exits.filter(({ to }) => to !== read.id) ?? [],
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    outcome: read.outcome ?? base?.outcome,
    manifest: read.manifest ?? base?.manifest,
  };
}
