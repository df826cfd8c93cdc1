/** What the next turns of a thread run with, changed between turns; a running turn is not touched. */
import type { Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { changesBetween, nextSettings, storeChanges } from "../next-settings.ts";
import { requireLoaded } from "../thread-facts.ts";
import { caughtUp } from "./keep.ts";
import { folderOf } from "./threads.ts";
import { patchFrom } from "./turns.ts";

export const updateSettings: Handler<"thread/settings/update"> = async (params, { server, connection }) => {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId } = loaded;
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : loaded.workspace;
  const before = await nextSettings(server, loaded);
  const settings = await nextSettings(server, { threadId, workspace }, { patch: patchFrom(params) });
  const moved = workspace === loaded.workspace ? {} : { cwd: workspace };
  const changes = { ...changesBetween(before, settings), ...moved };
  return heldBack(connection, threadId, async () => {
    if (await storeChanges(server, threadId, { changes, by: connection.by })) await caughtUp(server);
    return {};
  });
};
