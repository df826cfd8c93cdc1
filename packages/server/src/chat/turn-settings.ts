/** With what the next turn of a chat runs: the message, then the chat, then the configuration of the server. */
import type { ThreadRow } from "@heddle/journal";
import type { TurnSettings } from "@heddle/protocol";
import { chatWishes, type ChatSettings } from "@heddle/dialects/chat";
import type { ChatContext } from "./call.ts";
import { CHAT_ORIGIN, settingsOf } from "./chats.ts";

export async function turnSettings(server: ChatContext, row: ThreadRow, message: ChatSettings): Promise<TurnSettings> {
  const wishes = chatWishes(settingsOf(row), message);
  const isChosen = wishes.model !== undefined || row.origin.startsWith(CHAT_ORIGIN);
  // A thread that another door began goes on with its model; nobody here has chosen another one.
  const before = isChosen ? undefined : await server.heddle.lastSettings(row.id);
  const model = before === undefined ? {} : { model: before.model, provider: before.provider };
  return server.settings.resolve({ ...wishes, ...model, workspace: row.workspace });
}
