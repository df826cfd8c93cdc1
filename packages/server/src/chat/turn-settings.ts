/** With what the next turn of a chat runs: what the thread says, whichever door it was told at, and for one turn the message. */
import { SETTING_KEYS, withCompanions, type SettingKey, type SettingsPatch } from "@heddle/agent/settings";
import type { ThreadRow } from "@heddle/journal";
import type { TurnSettings } from "@heddle/protocol";
import { chatPatch, type ChatSettings } from "@heddle/dialects/chat";
import type { ChatContext } from "./call.ts";

export interface ChatTurnSettings {
  readonly settings: TurnSettings;
  /** Said beside the message: it counts for this turn alone. */
  readonly once: readonly SettingKey[];
}

export async function turnSettings(
  { heddle, settings }: ChatContext,
  { id }: ThreadRow,
  message: ChatSettings,
): Promise<ChatTurnSettings> {
  const stored = await heddle.storedSettings(id);
  const given = chatPatch(message);
  const mode = given.mode ?? stored.thread.mode ?? stored.turn.mode;
  // Plan mode is read-only, whatever else is asked for.
  const patch: SettingsPatch = mode === "plan" ? { ...given, sandboxMode: "read-only" } : given;
  return {
    settings: await settings.resolve({ workspace: stored.workspace, stored, patch }),
    once: withCompanions(SETTING_KEYS.filter((key) => patch[key] !== undefined)),
  };
}
