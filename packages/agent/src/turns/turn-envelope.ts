/** The envelope a turn begins in, from its settings and the configuration, never above its thread's ceiling. */
import { realpathSync } from "node:fs";
import path from "node:path";
import { HeddleError, type Envelope, type TurnSettings } from "@heddle/protocol";
import { envelopeFor, heddleFolders, narrowEnvelope, WEB_SEARCH } from "@heddle/tools";
import type { HeddleOptions } from "../heddle.ts";
import { requireWithinCeiling } from "../approvals/hop.ts";

export function turnEnvelope(
  { home, masked = [], mcpServers = [], isUnattended }: HeddleOptions,
  { settings: given, workspace }: { readonly settings: TurnSettings; readonly workspace: string },
): Envelope {
  const { allowedTools } = given;
  const settings = { ...given, writableRoots: realRoots(given.writableRoots, workspace) };
  const envelope = envelopeFor({
    mode: settings.sandboxMode,
    workspace,
    writableRoots: settings.writableRoots,
    networkAccess: settings.networkAccess,
    approval: settings.approvalPolicy,
    masked: [...ownFolders(home, { mode: settings.sandboxMode, workspace }), ...masked],
    mcpServers,
    isWatched: !isUnattended,
    hasClientTools: !isUnattended && settings.hasClientTools === true,
    isForTask: settings.isForTask === true,
    search: asksSearch(settings) ? (settings.isSearchByOwner === true ? "always" : "withNetwork") : undefined,
  });
  requireWithinCeiling({ settings, workspace }, envelope);
  return allowedTools === undefined ? envelope : narrowEnvelope(envelope, allowedTools);
}

/** Work on a task has none, whatever the configuration says. */
export function asksSearch({ webSearch, isForTask, allowedTools }: TurnSettings): boolean {
  return webSearch !== undefined && isForTask !== true && (allowedTools?.includes(WEB_SEARCH) ?? true);
}

/** In read-only mode a workspace inside Heddle's own folders (the tree of a task) must stay visible. */
function ownFolders(
  home: string,
  { mode, workspace }: { readonly mode: TurnSettings["sandboxMode"]; readonly workspace: string },
): readonly string[] {
  return heddleFolders(home).filter((folder) => mode !== "read-only" || !isInside(workspace, folder));
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
