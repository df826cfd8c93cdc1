/** What changes the past that counts: taken back, added to from outside, and said of it. */
import { changeGitInfo, injectEntries, revertThread as revert } from "@heddle/agent";
import { isHeddleError } from "@heddle/protocol";
import { injectedEntries } from "@heddle/dialects/codex-app-server";
import type { Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import {
  describeThread,
  NO_METADATA,
  NO_ROLLOUT,
  refuse,
  requireKept,
  requireLoaded,
  requireRow,
} from "../thread-facts.ts";

export const injectItems: Handler<"thread/inject_items"> = async ({ threadId, items }, { server, connection }) => {
  const { threadId: id } = requireLoaded(server, threadId);
  if (items.length === 0) throw refuse("items must not be empty");
  const read = injectedEntries(items);
  if (read.kind === "invalid") throw refuse(read.message);
  if (read.entries.length > 0) {
    await injectEntries(server.heddle.journal, id, { entries: read.entries, by: connection.by });
  }
  const message = `items of these types were skipped: ${read.passedOver.join(", ")}`;
  const warning = { method: "warning", params: { threadId: id, message } };
  return { result: {}, after: () => (read.passedOver.length === 0 ? undefined : connection.notify(warning)) };
};

export const revertThread: Handler<"thread/revert"> = async ({ threadId, beforeTurnId }, { server, connection }) => {
  const { threadId: id, isEphemeral } = requireLoaded(server, threadId);
  if (isEphemeral) throw refuse("ephemeral threads do not support thread/revert");
  return heldBack(connection, id, async () => {
    try {
      await revert(server.heddle.journal, { threadId: id, beforeTurnId, by: connection.by });
    } catch (error) {
      if (isHeddleError(error) && error.code === "turn.active") {
        throw refuse("cannot revert thread while a turn is in progress");
      }
      if (isHeddleError(error) && error.code === "turn.not-found") throw refuse(`turn not found: ${beforeTurnId}`);
      throw error;
    }
    const thread = await describeThread(server, await requireRow(server, id, NO_ROLLOUT));
    return { thread, turnsBackwardsCursor: null, itemsBackwardsCursor: null };
  });
};

export const updateMetadata: Handler<"thread/metadata/update"> = async (
  { threadId, gitInfo },
  { server, connection },
) => {
  const { id } = await requireKept(server, threadId, { missing: "thread not found: ", unkept: NO_METADATA });
  if (gitInfo === undefined || gitInfo === null) {
    throw refuse("thread metadata update must include at least one field");
  }
  if (Object.values(gitInfo).every((value) => value === undefined)) {
    throw refuse("gitInfo must include at least one field");
  }
  for (const [key, value] of Object.entries(gitInfo)) {
    if (value?.trim() === "") throw refuse(`gitInfo.${key} must not be empty`);
  }
  await changeGitInfo(server.heddle.journal, id, { gitInfo, by: connection.by });
  return { result: { thread: await describeThread(server, await requireRow(server, id, NO_ROLLOUT)) } };
};
