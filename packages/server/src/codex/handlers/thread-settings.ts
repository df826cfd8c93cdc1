/** What the next turns of a thread run with, changed between turns; a running turn is not touched. */
import { settingsUpdated, type ThreadSettingsUpdateParams } from "@heddle/dialects/codex-app-server";
import type { Call } from "../../rpc/call.ts";
import { changesBetween, nextSettings, storeChanges } from "../next-settings.ts";
import type { Reply } from "../../rpc/peer.ts";
import { requireLoaded } from "../thread-facts.ts";
import { folderOf } from "./threads.ts";
import { patchFrom } from "./turns.ts";

export async function updateSettings(
  params: ThreadSettingsUpdateParams,
  { server, connection: { by } }: Call,
): Promise<Reply> {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId } = loaded;
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : loaded.workspace;
  const before = await nextSettings(server, loaded);
  const settings = await nextSettings(server, { threadId, workspace }, { patch: patchFrom(params) });
  const moved = workspace === loaded.workspace ? {} : { cwd: workspace };
  const changes = { ...changesBetween(before, settings), ...moved };
  if (!(await storeChanges(server, threadId, { changes, by }))) return { result: {} };
  loaded.workspace = workspace;
  const notification = settingsUpdated(threadId, settings, workspace);
  return { result: {}, after: () => server.threads.openFeed(threadId)?.tell(notification) };
}
