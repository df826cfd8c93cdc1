/** What the next turn of a thread runs with: asked for anew each time, because any door may have changed it. */
import { changeSettings } from "@heddle/agent";
import { SETTING_KEYS, withCompanions, wordsOf, type SettingsPatch } from "@heddle/agent/settings";
import type { By, TurnSettings } from "@heddle/protocol";
import type { ServerContext } from "../rpc/call.ts";
import type { LoadedThread } from "./loaded.ts";

type Thread = Pick<LoadedThread, "threadId" | "workspace">;

export async function nextSettings(
  { heddle, settings }: Pick<ServerContext, "heddle" | "settings">,
  { threadId, workspace }: Thread,
  { patch, clientId }: { readonly patch?: SettingsPatch; readonly clientId?: string | undefined } = {},
): Promise<TurnSettings> {
  const stored = await heddle.storedSettings(threadId, clientId);
  // As the original: the thread is there, and its first turn says what is missing.
  return settings.resolve({ workspace, stored, patch, mayLackKey: true });
}

/** Puts what has changed on record, for every door; answers whether anything has. */
export async function storeChanges(
  { heddle }: ServerContext,
  threadId: string,
  change: { readonly changes: Readonly<Record<string, unknown>> } & By,
): Promise<boolean> {
  if (Object.keys(change.changes).length === 0) return false;
  await changeSettings(heddle.journal, threadId, change);
  return true;
}

/** The difference in the words of the journal. */
export function changesBetween(before: TurnSettings, after: TurnSettings): Readonly<Record<string, unknown>> {
  const [old, now] = [patchOf(before), patchOf(after)];
  const changed = SETTING_KEYS.filter((key) => JSON.stringify(old[key]) !== JSON.stringify(now[key]));
  return wordsOf(Object.fromEntries(withCompanions(changed).map((key) => [key, now[key]])));
}

function patchOf(settings: TurnSettings): SettingsPatch {
  return { ...settings, mode: settings.mode ?? "default" };
}
