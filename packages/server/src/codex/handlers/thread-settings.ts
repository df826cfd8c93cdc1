/** What the next turns of a thread run with, changed between turns; a running turn is not touched. */
import { changeSettings } from "@heddle/agent";
import type { ThreadSettingsUpdateParams } from "@heddle/dialects/codex-app-server";
import type { Call } from "../../rpc/call.ts";
import { changesBetween } from "../next-settings.ts";
import type { Reply } from "../../rpc/peer.ts";
import { requireLoaded } from "../thread-facts.ts";
import { heldBack } from "../../rpc/held.ts";
import { caughtUp } from "./keep.ts";
import { folderOf } from "./threads.ts";
import { settingsWith } from "./turns.ts";

export async function updateSettings(params: ThreadSettingsUpdateParams, { server, connection }: Call): Promise<Reply> {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId } = loaded;
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : loaded.workspace;
  const settings = settingsWith(loaded.settings, params);
  const moved = workspace === loaded.workspace ? {} : { cwd: workspace };
  const changes = { ...changesBetween(loaded.settings, settings), ...moved };
  if (Object.keys(changes).length === 0) return { result: {} };
  return heldBack(connection, threadId, async () => {
    await changeSettings(server.heddle.journal, threadId, { changes, by: connection.by });
    await caughtUp(server);
    return {};
  });
}
