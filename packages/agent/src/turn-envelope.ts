/** The envelope a turn begins in: what its settings and the configuration come to, never above its thread's ceiling. */
import type { Envelope, TurnSettings } from "@heddle/protocol";
import { envelopeFor, narrowEnvelope } from "@heddle/tools";
import type { HeddleOptions } from "./heddle.ts";
import { requireWithinCeiling } from "./hop.ts";

export function turnEnvelope(
  { home, masked = [], mcpServers = [], isUnattended }: HeddleOptions,
  { settings, workspace }: { readonly settings: TurnSettings; readonly workspace: string },
): Envelope {
  const { allowedTools } = settings;
  const envelope = envelopeFor({
    mode: settings.sandboxMode,
    workspace,
    writableRoots: settings.writableRoots,
    networkAccess: settings.networkAccess,
    approval: settings.approvalPolicy,
    masked: [home, ...masked],
    mcpServers,
    isWatched: !isUnattended,
    hasClientTools: !isUnattended && settings.hasClientTools === true,
    isForTask: settings.isForTask === true,
  });
  requireWithinCeiling({ settings, workspace }, envelope);
  return allowedTools === undefined ? envelope : narrowEnvelope(envelope, allowedTools);
}
