/** What a session can be set to, and is: its envelope, its model, how long that reasons. */
import { changeSettings, turnEnvelope } from "@heddle/agent";
import { storedForm, storedKey, type SettingsPatch } from "@heddle/agent/settings";
import { UNSET, type AcpChoices } from "@heddle/dialects/acp";
import { HeddleError, isSandboxMode, type TurnSettings } from "@heddle/protocol";
import { ENVELOPE_OF_MODE } from "@heddle/tools";
import { envelopeFolders, readEnvelopes, viewEnvelopes, type Envelopes } from "@heddle/tools/envelopes";
import { modelsLike } from "../codex/handlers/models.ts";
import { changesBetween, nextSettings, storeChanges } from "../codex/settings.ts";
import type { ServerContext } from "../rpc/call.ts";
import type { AcpConnection } from "./connection.ts";
import type { AcpSession } from "./session.ts";

type Thread = Pick<AcpSession, "threadId" | "workspace">;

export async function readChoices(server: ServerContext, thread: Thread): Promise<AcpChoices> {
  return choicesOf(server, await nextSettings(server, thread), thread.workspace);
}

function choicesOf(server: ServerContext, settings: TurnSettings, workspace: string): AcpChoices {
  const { runner, model, effort } = settings;
  const modes = viewEnvelopes(envelopesOf(server, workspace)).map(({ id, description }) => ({ id, description }));
  // Another program knows its own models; which they are it says to nobody.
  const models = runner === undefined ? modelsLike(model) : [...new Set([model, UNSET])];
  return { modes, mode: envelopeOf(settings), models, model, effort };
}

function envelopesOf({ home }: ServerContext, workspace: string): Envelopes {
  return readEnvelopes(envelopeFolders(home, workspace));
}

/** A sandbox mode is a name for an envelope. */
function envelopeOf({ envelope, sandboxMode }: TurnSettings): string {
  const name = envelope ?? sandboxMode;
  return isSandboxMode(name) ? ENVELOPE_OF_MODE[name] : name;
}

/**
 * Into an envelope, by the rules of hops. A thread that has had no turn is in none yet: it begins there, below its ceiling.
 */
export async function setMode({ server, by }: AcpConnection, session: AcpSession, to: string): Promise<void> {
  const { threadId, workspace } = session;
  envelopesOf(server, workspace).entry(to);
  const { mode } = await session.choices();
  if (mode === to) return;
  if ((await server.heddle.lastSettings(threadId)) === undefined)
    return setSettings({ server, by }, session, { envelope: to });
  await server.heddle.as(by).hopThread({ threadId, to, reason: "chosen by the user in an editor" });
}

export async function setOption(
  connection: AcpConnection,
  session: AcpSession,
  { configId, value }: { readonly configId: string; readonly value: string | boolean },
): Promise<void> {
  if (typeof value === "boolean") throw new HeddleError("usage.invalid", `${configId} takes a text, not a boolean`);
  switch (configId) {
    case "mode":
      return setMode(connection, session, value);
    case "model":
      return setSettings(connection, session, { model: value });
    case "effort": {
      if (value !== UNSET) return setSettings(connection, session, { effort: value });
      const { server, by } = connection;
      await changeSettings(server.heddle.journal, session.threadId, { changes: { [storedKey("effort")]: null }, by });
      return;
    }
    default:
      throw new HeddleError(
        "usage.invalid",
        `there is no option ${configId.slice(0, 100)}; there are: mode, model, effort`,
      );
  }
}

/** Refuses an envelope that does not exist, or is above the ceiling, before anything is stored. */
export async function requireEnvelope(
  { home, host }: ServerContext,
  turn: { readonly settings: TurnSettings; readonly workspace: string },
): Promise<void> {
  const { masked = [], mcpServers = [] } = host;
  await turnEnvelope({ home, masked, mcpServers, isUnattended: false }, turn);
}

/** Of the next turns; what cannot be run with is refused here. */
async function setSettings(
  { server, by }: Pick<AcpConnection, "server" | "by">,
  { threadId, workspace }: Thread,
  patch: SettingsPatch,
): Promise<void> {
  const before = await nextSettings(server, { threadId, workspace });
  const after = await nextSettings(server, { threadId, workspace }, { patch });
  await requireEnvelope(server, { settings: after, workspace });
  await storeChanges(server, threadId, { changes: { ...changesBetween(before, after), ...storedForm(patch) }, by });
}
