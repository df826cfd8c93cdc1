/**
 * The settings a thread has for its next turn: those of its last turn, and what was changed since at any door. Values
 * for one turn alone and reverted turns do not count.
 */
import { realpath } from "node:fs/promises";
import type { StoredEvent, TurnSettings } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { eventAt } from "../threads/history.ts";
import { readPlan, turnsBack, type Past } from "../threads/past.ts";
import { EMBEDDED } from "../runners/config.ts";
import { requireThread } from "../threads/threads.ts";
import { companionsOf, KEPT_KEYS, LEADING_KEYS, SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";
import { patchOf, storedKey } from "./stored-keys.ts";

export interface StoredSettings {
  readonly turn: SettingsPatch;
  /** Changed since, and keys that turns do not keep. */
  readonly thread: SettingsPatch;
  readonly workspace: string | undefined;
  /** Clients have declared tools. */
  readonly hasClientTools: boolean;
}

/** `past`: oldest first, without reverted turns. */
export function storedSettings(past: readonly StoredEvent[]): StoredSettings {
  const fold = new SettingsFold();
  for (const event of past) fold.add(event);
  return fold.settings;
}

const KINDS = ["thread.settings-changed", "thread.tools-declared"] as const;

/**
 * Reads only what counts, however long the thread is. `beforeClientId`: as before the turn of this client id, so that a
 * repeated request gets the same settings as the first one.
 */
export async function readStoredSettings(
  journal: Journal,
  threadId: string,
  beforeClientId?: string,
): Promise<StoredSettings & { readonly workspace: string }> {
  const begun = beforeClientId === undefined ? undefined : await admittedAt(journal, threadId, beforeClientId);
  const past = await readPlan(journal, threadId, { upTo: begun === undefined ? undefined : begun - 1 });
  const changes = await Promise.all(past.parts.map((part) => journal.marks.events({ ...part, kinds: KINDS })));
  const order = (event: StoredEvent): number => past.parts.findIndex(({ stream }) => stream === event.stream);
  const found = [changes.flat(), await lastAdmissions(journal, past), await lastHop(journal, threadId, past)].flat();
  const events = found.toSorted((a, b) => order(a) - order(b) || a.version - b.version);
  const stored = storedSettings(events);
  const current = (await requireThread(journal, threadId)).workspace;
  const named = stored.workspace;
  return { ...stored, workspace: named === undefined ? current : await realpath(named).catch(() => current) };
}

async function admittedAt(journal: Journal, stream: string, name: string): Promise<number | undefined> {
  const sent = await journal.marks.events({ stream, kinds: ["sent"], name });
  return sent.find(({ body }) => body.type === "turn.admitted")?.version;
}

/** From the last one back, until every key has a turn that keeps it. */
async function lastAdmissions(journal: Journal, past: Past): Promise<readonly StoredEvent[]> {
  const admissions: StoredEvent[] = [];
  let open: readonly string[] = KEPT_KEYS;
  for await (const turn of turnsBack(journal, past)) {
    const event = await eventAt(journal, turn.threadId, turn.admittedVersion);
    if (event?.body.type !== "turn.admitted") continue;
    const { once = [] } = event.body;
    admissions.push(event);
    open = open.filter((key) => once.includes(key));
    if (open.length === 0) break;
  }
  return admissions;
}

/** Where the thread has hopped to it stays, until its settings say otherwise. */
async function lastHop(journal: Journal, stream: string, { kept }: Past): Promise<readonly StoredEvent[]> {
  const row = await journal.threads.envelope(stream);
  if (row === undefined || row.isLeft || (row.cause !== "hop" && row.cause !== "back")) return [];
  const { enteredVersion } = row;
  const isKept = kept.some(
    (part) => part.stream === stream && enteredVersion > part.after && enteredVersion <= part.upTo,
  );
  const event = isKept ? await eventAt(journal, stream, enteredVersion) : undefined;
  return event === undefined ? [] : [event];
}

/** An earlier turn without them chose these, whatever the configuration says since. */
const SAID_BY_ABSENCE: Partial<Record<SettingKey, string>> = { mode: "default", runner: EMBEDDED };

class SettingsFold {
  readonly #turn = new Map<SettingKey, unknown>();
  readonly #thread = new Map<string, unknown>();
  #hasClientTools = false;

  add({ body }: StoredEvent): void {
    if (body.type === "thread.tools-declared") this.#hasClientTools = true;
    if (body.type === "thread.settings-changed") this.#change(body.changes);
    if (body.type === "envelope.entered" && body.hop !== undefined) this.#change({ envelope: body.envelope.id });
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
    const isGiven = (key: SettingKey): boolean => changes[storedKey(key)] !== undefined;
    for (const key of LEADING_KEYS.filter(isGiven).flatMap(companionsOf)) this.#forget(key);
    if (isGiven("model") && !isGiven("provider")) {
      const { provider } = this.settings.thread;
      this.#thread.delete(storedKey("provider"));
      if (changes["model"] === null) this.#turn.delete("provider");
      else if (provider !== undefined) this.#turn.set("provider", provider);
    }
    for (const key of SETTING_KEYS) if (isGiven(key)) this.#forget(key);
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) this.#thread.delete(key);
      else this.#thread.set(key, value);
    }
  }

  #keep(settings: TurnSettings, once: readonly string[]): void {
    this.#thread.delete("cwd");
    for (const key of KEPT_KEYS) {
      if (once.includes(key)) continue;
      this.#forget(key);
      const value = settings[key] ?? SAID_BY_ABSENCE[key];
      if (value !== undefined) this.#turn.set(key, value);
    }
  }

  #forget(key: SettingKey): void {
    this.#turn.delete(key);
    this.#thread.delete(storedKey(key));
  }
}
