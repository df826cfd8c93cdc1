/**
 * What a thread says about its next turn: with what its last turn ran, and what was changed since, whoever changed it. What
 * counted for one turn alone does not count any more, and neither does a turn that was taken back.
 */
import type { StoredEvent, TurnSettings } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { readHistory, withoutReverted } from "../threads/history.ts";
import { readStream } from "../threads/stored-events.ts";
import { createSerial } from "../turns/serial.ts";
import { SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";
import { patchOf, wordOf } from "./words.ts";

export interface StoredSettings {
  /** As in the last turn. */
  readonly turn: SettingsPatch;
  /** Changed since, and what a turn does not keep. */
  readonly thread: SettingsPatch;
  /** Named for the next turn since the last one. */
  readonly workspace: string | undefined;
  /** Clients have brought tools along. */
  readonly hasClientTools: boolean;
}

/** Kept from turn to turn; the rest is of the configuration, or of the turn alone. */
const KEPT = [
  "provider",
  "model",
  "effort",
  "sandboxMode",
  "networkAccess",
  "writableRoots",
  "approvalPolicy",
  "mode",
] as const satisfies readonly SettingKey[];

/** A sandbox mode that is named brings its own. */
const WITH_SANDBOX = ["networkAccess", "writableRoots"] as const satisfies readonly SettingKey[];

/** `past`: oldest first, without turns that were taken back. */
export function storedSettings(past: readonly StoredEvent[]): StoredSettings {
  const fold = new SettingsFold();
  for (const event of past) fold.add(event);
  return fold.settings;
}

/** Threads whose settings are kept in mind; of others they are read again. */
const MAX_KEPT = 1_000;

export type ReadSettings = (threadId: string, beforeClientId?: string) => Promise<StoredSettings>;

/** Reads what is new since the last time; the whole past only for the first time, and when turns were taken back. */
export function settingsReader(journal: Journal): ReadSettings {
  const kept = new Map<string, { fold: SettingsFold; version: number; clientIds: Set<string> }>();
  const serial = createSerial();
  const refresh = async (threadId: string) => {
    const known = kept.get(threadId);
    const fresh = known === undefined ? undefined : await readStream(journal, threadId, { after: known.version });
    const isWhole = fresh === undefined || fresh.some(({ body }) => body.type === "thread.reverted");
    const entry = (isWhole ? undefined : known) ?? {
      fold: new SettingsFold(),
      version: 0,
      clientIds: new Set<string>(),
    };
    const history = isWhole ? await readHistory(journal, threadId) : fresh;
    for (const event of isWhole ? withoutReverted(history) : history) entry.fold.add(event);
    for (const { stream, body, version } of history) {
      if (stream !== threadId) continue;
      entry.version = version;
      if (body.type === "turn.admitted" && body.clientId !== undefined) entry.clientIds.add(body.clientId);
    }
    kept.delete(threadId);
    kept.set(threadId, entry);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    return entry;
  };
  return (threadId, beforeClientId) =>
    serial.run(threadId, async () => {
      const { fold, clientIds } = await refresh(threadId);
      if (beforeClientId === undefined || !clientIds.has(beforeClientId)) return fold.settings;
      const history = await readHistory(journal, threadId);
      const begun = history.findIndex(
        ({ stream, body }) => stream === threadId && body.type === "turn.admitted" && body.clientId === beforeClientId,
      );
      return storedSettings(withoutReverted(history.slice(0, begun)));
    });
}

class SettingsFold {
  readonly #turn = new Map<SettingKey, unknown>();
  /** By the words of the journal. */
  readonly #thread = new Map<string, unknown>();
  #hasClientTools = false;

  add({ body }: StoredEvent): void {
    if (body.type === "thread.tools-declared") this.#hasClientTools = true;
    if (body.type === "thread.settings-changed") this.#change(body.changes);
    if (body.type === "turn.admitted") this.#keep(body.settings, body.once ?? []);
  }

  get settings(): StoredSettings {
    const cwd = this.#thread.get("cwd");
    return {
      turn: Object.fromEntries(this.#turn),
      thread: patchOf(Object.fromEntries(this.#thread)),
      workspace: typeof cwd === "string" ? cwd : undefined,
      hasClientTools: this.#hasClientTools,
    };
  }

  #change(changes: Readonly<Record<string, unknown>>): void {
    const isSaid = (key: SettingKey): boolean => changes[wordOf(key)] !== undefined;
    if (isSaid("sandboxMode")) for (const key of WITH_SANDBOX) this.#forget(key);
    if (isSaid("model") && !isSaid("provider")) {
      const { provider } = this.settings.thread;
      this.#thread.delete(wordOf("provider"));
      if (changes["model"] === null) this.#turn.delete("provider");
      else if (provider !== undefined) this.#turn.set("provider", provider);
    }
    for (const key of SETTING_KEYS) if (isSaid(key)) this.#forget(key);
    for (const [word, value] of Object.entries(changes)) {
      if (value === null) this.#thread.delete(word);
      else this.#thread.set(word, value);
    }
  }

  #keep(settings: TurnSettings, once: readonly string[]): void {
    this.#thread.delete("cwd");
    for (const key of KEPT) {
      if (once.includes(key)) continue;
      this.#forget(key);
      const value = key === "mode" ? (settings.mode ?? "default") : settings[key];
      if (value !== undefined) this.#turn.set(key, value);
    }
  }

  #forget(key: SettingKey): void {
    this.#turn.delete(key);
    this.#thread.delete(wordOf(key));
  }
}
