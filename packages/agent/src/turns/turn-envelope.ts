/** The envelope a turn begins in, from its settings and the configuration, never above its thread's ceiling. */
import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { HeddleError, isSandboxMode, type Envelope, type TurnSettings } from "@heddle/protocol";
import {
  builtInEnvelope,
  ENVELOPE_OF_MODE,
  heddleFolders,
  narrowEnvelope,
  pluginsRoot,
  resolveEnvelope,
  WEB_SEARCH,
  worktreesRoot,
  type EnvelopeSpec,
  type Surroundings,
} from "@heddle/tools";
import type { HeddleOptions } from "../heddle.ts";

export interface TurnEnvelope {
  readonly envelope: Envelope;
  /** The widest envelope of the thread; absent: no limit. */
  readonly ceiling?: Ceiling | undefined;
  /** Of a turn that messages started: it is allowed no more, and the thread stays in the envelope it is in. */
  readonly bound?: Envelope | undefined;
  /**
   * Another envelope in the same surroundings, as of the beginning of the turn. Throws `envelope.unknown`, and
   * `envelope.invalid` for a file that allows more than it may. The ceiling is judged by the caller.
   */
  named(id: string): Envelope;
}

export interface Ceiling {
  readonly envelope: Envelope;
  /** What of an envelope is above it, as text; undefined: nothing. */
  exceededBy(envelope: Envelope): string | undefined;
  /** Of a child, which has no more than its parent; absent: the owner set it for this thread. */
  readonly whose?: string;
}

type Given = Pick<
  HeddleOptions,
  "home" | "masked" | "mcpServers" | "isUnattended" | "hasEvidenceTools" | "childThreads" | "messages"
>;

interface Asked {
  readonly settings: TurnSettings;
  readonly workspace: string;
}

export async function turnEnvelope(options: Given, { settings: given, workspace }: Asked): Promise<TurnEnvelope> {
  const asked = { settings: { ...given, writableRoots: realRoots(given.writableRoots, workspace) }, workspace };
  const { allowedTools } = given;
  const { named, ceiling } = await lookups(options, asked);
  const narrowed = (id: string): Envelope => {
    const envelope = named(id);
    if (envelope.sandbox !== "off") refuseOwnFolders(options.home, [workspace, ...asked.settings.writableRoots]);
    return allowedTools === undefined ? envelope : narrowEnvelope(envelope, allowedTools);
  };
  const envelope = narrowed(envelopeName(given));
  requireBelow(envelope, ceiling);
  return { envelope, named: narrowed, ...(ceiling === undefined ? {} : { ceiling }) };
}

/** Most homes and projects have no envelopes of their own and no ceiling, and load nothing for them. */
async function lookups(options: Given, asked: Asked): Promise<Pick<TurnEnvelope, "named" | "ceiling">> {
  const { settings, workspace } = asked;
  const within = ({ id, write }: Pick<EnvelopeSpec, "id" | "write">): Surroundings => ({
    ...surroundingsOf(options, asked, write.length > 0),
    // A client that chose a sandbox mode, and no envelope, knows nothing of hops.
    mayHop: settings.envelope !== undefined || id !== ENVELOPE_OF_MODE[settings.sandboxMode],
  });
  const folders = { user: path.join(options.home, "envelopes"), project: path.join(workspace, ".heddle", "envelopes") };
  if (settings.ceiling === undefined && !existsSync(folders.user) && !existsSync(folders.project)) {
    return { named: (id) => builtIn(id, within) };
  }
  const { readEnvelopes, withinCeiling } = await import("@heddle/tools/envelopes");
  const known = readEnvelopes(folders);
  const most =
    settings.ceiling === undefined
      ? undefined
      : known.resolveOwn(nameOf(settings.ceiling), within({ id: "", write: [] }));
  return {
    named: (id) => known.resolve(id, within(known.entry(id).spec), most),
    ceiling: most && { envelope: most, exceededBy: (envelope) => withinCeiling(envelope, most) },
  };
}

function builtIn(id: string, within: (spec: EnvelopeSpec) => Surroundings): Envelope {
  const spec = builtInEnvelope(id);
  return resolveEnvelope(spec, within(spec));
}

/** Refuses with `ceiling.exceeded`; without a ceiling nothing is refused. */
export function requireBelow(envelope: Envelope, ceiling: Ceiling | undefined): void {
  const above = ceiling?.exceededBy(envelope);
  if (above === undefined) return;
  const whose =
    ceiling?.whose ??
    `this thread ("${ceiling?.envelope.id}"), which only its owner can raise (ceiling in config.toml, or --ceiling)`;
  throw new HeddleError("ceiling.exceeded", `${above} is above the ceiling of ${whose}`);
}

/** A sandbox mode is a name for an envelope. */
function envelopeName({ envelope, sandboxMode }: Pick<TurnSettings, "envelope" | "sandboxMode">): string {
  return envelope === undefined ? ENVELOPE_OF_MODE[sandboxMode] : nameOf(envelope);
}

function nameOf(name: string): string {
  return isSandboxMode(name) ? ENVELOPE_OF_MODE[name] : name;
}

function surroundingsOf(
  { home, masked = [], mcpServers = [], isUnattended, hasEvidenceTools = false, childThreads, messages }: Given,
  { settings, workspace }: Asked,
  canWrite: boolean,
): Surroundings {
  return {
    workspace,
    writableRoots: settings.writableRoots,
    networkAccess: settings.networkAccess,
    networkHosts: settings.networkHosts,
    approval: settings.approvalPolicy,
    masked: [...ownFolders(home, { canWrite, workspace }), ...masked],
    mcpServers,
    isWatched: !isUnattended,
    hasClientTools: !isUnattended && settings.hasClientTools === true,
    isForTask: settings.isForTask === true,
    // The budget of a task counts its own turns alone.
    mayStartThreads: childThreads !== undefined && settings.isForTask !== true,
    hasEvidence: hasEvidenceTools,
    hasMessages: messages?.hasTools === true && settings.isForTask !== true,
    search: asksSearch(settings) ? (settings.isSearchByOwner === true ? "always" : "withNetwork") : undefined,
  };
}

/** Work on a task has none, whatever the configuration says. */
export function asksSearch({ webSearch, isForTask, allowedTools }: TurnSettings): boolean {
  return webSearch !== undefined && isForTask !== true && (allowedTools?.includes(WEB_SEARCH) ?? true);
}

/** Where nothing is written, a workspace inside Heddle's own folders (the tree of a task) must stay visible. */
function ownFolders(
  home: string,
  { canWrite, workspace }: { readonly canWrite: boolean; readonly workspace: string },
): readonly string[] {
  return heddleFolders(home).filter((folder) => canWrite || !isInside(workspace, folder));
}

/**
 * In the home are keys, the record and what decides over agents; a folder that is shown there would lie over what hides it. The
 * tree of a task is below another folder, which is refused as a whole.
 */
function refuseOwnFolders(home: string, folders: readonly string[]): void {
  const [whole, trees] = [[home, pluginsRoot(home)].map(realOr), realOr(worktreesRoot(home))];
  const own = folders.map(realOr).find((folder) => folder === trees || whole.some((root) => isInside(folder, root)));
  if (own === undefined) return;
  throw new HeddleError(
    "usage.invalid",
    `${own} is a folder of Heddle itself, with its keys, its record and its rules; choose a project folder, or danger-full-access`,
  );
}

/**
 * Resolves links in the owner's names of folders. A link below the workspace or another root, where agents write, must
 * not lead out.
 */
function realRoots(roots: readonly string[], workspace: string): string[] {
  const known = [workspace, ...roots].map((name) => ({ name: path.resolve(name), real: realOr(path.resolve(name)) }));
  for (const { name, real } of known) {
    const above = known.find((other) => isInside(name, other.name) && !isInside(real, other.real));
    if (above === undefined) continue;
    const message = `${name} leads to ${real} through a link below ${above.name}, where agents write; name the folder itself`;
    throw new HeddleError("workspace.moved", message, { details: { path: name, leadsTo: real } });
  }
  return known.slice(1).map(({ real }) => real);
}

/** The sandbox reports a missing folder. */
function realOr(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return folder;
  }
}

function isInside(folder: string, root: string): boolean {
  return folder === root || folder.startsWith(root.endsWith(path.sep) ? root : `${root}${path.sep}`);
}
