/**
 * What a thread says about its next turn: with what its last turn ran, and what was changed since, whoever changed it. What
 * counted for one turn alone does not count any more, and neither does a turn that was taken back.
 */
import type { StoredEvent, TurnSettings } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { lineage, withoutReverted } from "../threads/history.ts";
import { companionsOf, KEPT_KEYS, SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";
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

/** `past`: oldest first, without turns that were taken back. */
export function storedSettings(past: readonly StoredEvent[]): StoredSettings {
  const fold = new SettingsFold();
  for (const event of past) fold.add(event);
  return fold.settings;
}

const KINDS = ["thread.reverted", "thread.settings-changed", "thread.tools-declared"] as const;

/**
 * Reads only what counts, however long the thread is. `beforeClientId`: as it was before the turn of this client id, so that
 * a request that is repeated comes to the same settings as the first time.
 */
export async function readStoredSettings(
  journal: Journal,
  threadId: string,
  beforeClientId?: string,
): Promise<StoredSettings> {
  const begun = beforeClientId === undefined ? undefined : await admittedAt(journal, threadId, beforeClientId);
  const parts = (await lineage(journal, threadId)).map(({ stream, upTo = (begun ?? Infinity) - 1 }) => ({
    stream,
    upTo,
  }));
  const marked = await Promise.all(
    parts.map(({ stream, upTo }) =>
      journal.marks.events({ stream, kinds: KINDS, ...(upTo === Infinity ? {} : { upTo }) }),
    ),
  );
  const isReverted = marked.flat().some(({ body }) => body.type === "thread.reverted");
  const past: StoredEvent[][] = [];
  let isFound = false;
  for (const [index, part] of [...parts.entries()].toReversed()) {
    const admitted: StoredEvent[] = [];
    for (const { admittedVersion } of isFound ? [] : (await journal.threads.turns(part.stream)).toReversed()) {
      if (admittedVersion > part.upTo) continue;
      const [event] = await journal.read({ stream: part.stream, after: admittedVersion - 1, limit: 1 });
      if (event?.body.type !== "turn.admitted") continue;
      admitted.push(event);
      // Everything that an earlier turn ran with was said again by this one.
      isFound = !isReverted && event.body.once === undefined;
      if (isFound) break;
    }
    past.unshift([...(marked[index] ?? []), ...admitted].toSorted((one, other) => one.version - other.version));
  }
  return storedSettings(withoutReverted(past.flat()));
}

async function admittedAt(journal: Journal, stream: string, name: string): Promise<number | undefined> {
  const sent = await journal.marks.events({ stream, kinds: ["sent"], name });
  return sent.find(({ body }) => body.type === "turn.admitted")?.version;
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
    if (isSaid("sandboxMode")) for (const key of companionsOf("sandboxMode")) this.#forget(key);
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
    for (const key of KEPT_KEYS) {
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
