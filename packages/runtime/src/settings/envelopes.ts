/**
 * What the names of an envelope and a ceiling come to. The owner's word (file, profile, -c, option) decides; a thread keeps
 * the ceiling it was given where that is lower, and a client can lower it and never raise it.
 */
import { heddleHome } from "@heddle/models";
import type { SettingsLayer, SettingsPatch, SettingsQuestion } from "@heddle/agent/settings";
import { HeddleError, isSandboxMode, type Envelope, type SandboxMode } from "@heddle/protocol";
import { ENVELOPE_OF_MODE, sandboxModeOf, type Surroundings } from "@heddle/tools";

export interface EnvelopeChoice {
  /** Absent: the envelope of the sandbox mode. */
  readonly envelope?: string;
  readonly ceiling?: string;
  /** What clients are told that know nothing but modes. */
  readonly sandboxMode?: SandboxMode;
}

/** Most turns name neither, and nothing is loaded for them. */
export async function chooseEnvelope(
  values: SettingsPatch,
  layers: SettingsQuestion,
  env: NodeJS.ProcessEnv,
): Promise<EnvelopeChoice> {
  const { envelope: name } = values;
  const words = ceilingsIn(layers);
  if (name === undefined && Object.values(words).every((word) => word === undefined)) return {};
  const { envelopeFolders, readEnvelopes, withinCeiling } = await import("@heddle/tools/envelopes");
  const known = readEnvelopes(envelopeFolders(heddleHome(env), undefined));
  const resolved = (id: string): Envelope => known.resolveOwn(id, surroundingsOf(values));
  const isWithin = (inner: string, outer: string | undefined): boolean =>
    outer === undefined || withinCeiling(resolved(inner), resolved(outer)) === undefined;
  const ceiling = chooseCeiling(words, isWithin);
  if (ceiling !== undefined) resolved(ceiling);
  // A project's envelope is known where the turn runs; it can do no more than `edit`.
  const spec = name === undefined ? undefined : known.entries.get(name)?.spec;
  return {
    ...(name === undefined ? {} : { envelope: name }),
    ...(ceiling === undefined ? {} : { ceiling }),
    ...(name === undefined ? {} : { sandboxMode: spec === undefined ? "workspace-write" : sandboxModeOf(spec) }),
  };
}

interface Ceilings {
  /** Of the configuration. */
  readonly owner: string | undefined;
  /** Typed by the owner for this run. */
  readonly flag: string | undefined;
  readonly thread: string | undefined;
  readonly request: string | undefined;
}

const OF_CONFIGURATION: readonly SettingsLayer["source"][] = ["file", "profile", "override"];

function ceilingsIn({ config, stored, asked }: SettingsQuestion): Ceilings {
  const last = (sources: readonly SettingsLayer["source"][]): string | undefined =>
    [...config, ...asked].findLast(({ source, values }) => sources.includes(source) && values.ceiling !== undefined)
      ?.values.ceiling;
  const named = { owner: last(OF_CONFIGURATION), flag: last(["flag"]), request: last(["request"]) };
  const thread = stored?.thread.ceiling;
  const all = Object.entries({ ...named, thread }).map(([key, name]) => [
    key,
    name !== undefined && isSandboxMode(name) ? ENVELOPE_OF_MODE[name] : name,
  ]);
  return { owner: undefined, flag: undefined, thread: undefined, request: undefined, ...Object.fromEntries(all) };
}

function chooseCeiling(
  { owner, flag, thread, request }: Ceilings,
  isWithin: (inner: string, outer: string | undefined) => boolean,
): string | undefined {
  const standing = thread !== undefined && isWithin(thread, owner) ? thread : owner;
  const before = flag ?? standing;
  if (request === undefined) return before;
  if (isWithin(request, before)) return request;
  const message = `the ceiling "${request}" is above "${before}", which only the owner can raise`;
  throw new HeddleError("ceiling.exceeded", message);
}

/** For comparing alone: no folder is touched. */
function surroundingsOf({ networkAccess = false, approvalPolicy = "never" }: SettingsPatch): Surroundings {
  return { workspace: "/workspace", writableRoots: [], networkAccess, approval: approvalPolicy, masked: [] };
}
