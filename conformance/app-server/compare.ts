/**
 * What two programs sent to the clients of one scenario, side by side. Messages are put beside each other by their words
 * (`item/started commandExecution`, `answer thread/start`), in order; what has no counterpart is missing, added or moved. Those
 * that have one are compared field by field.
 */
import type { Message } from "./client.ts";
import type { Received, ScenarioSeen } from "./play.ts";

export interface Found {
  readonly scenario: string;
  readonly kind: "missing" | "added" | "moved" | "field" | "exit";
  /** Who was sent it, and what: `a: answer thread/start`. */
  readonly message: string;
  /** Where in the message; empty for a whole one. */
  readonly path: string;
  readonly codex?: unknown;
  readonly heddle?: unknown;
}

export interface Comparison {
  readonly found: readonly Found[];
  /** Messages of Codex that have a counterpart, and how many of them differ at most by fields that Heddle adds. */
  readonly compared: number;
  readonly same: number;
}

export function compareSeen(codex: ScenarioSeen, heddle: ScenarioSeen, unsteady: readonly string[] = []): Comparison {
  const found: Found[] = [];
  let [compared, same] = [0, 0];
  for (const { client, messages } of codex.received) {
    const ours = heddle.received.find((other) => other.client === client);
    const one = compareReceived(
      { client, messages: steady(messages, unsteady) },
      { client, messages: steady(ours?.messages ?? [], unsteady) },
    );
    compared += one.compared;
    same += one.same;
    found.push(...one.found.map((difference) => ({ ...difference, scenario: codex.id })));
  }
  if (codex.exit !== heddle.exit) {
    const sides = { codex: codex.exit, heddle: heddle.exit };
    found.push({ scenario: codex.id, kind: "exit", message: "exit", path: "", ...sides });
  }
  return { found, compared, same };
}

/** Sent whenever something beside the turn gets that far, of which each program has its own time. */
const BESIDE = "mcpServer/startupStatus/updated";

/** What comes beside the rest is put last, in its own order. */
function steady(messages: readonly Message[], unsteady: readonly string[]): readonly Message[] {
  return messages
    .filter((message) => !unsteady.includes(wordOf(message)))
    .toSorted((one, other) => Number(one.method === BESIDE) - Number(other.method === BESIDE));
}

type Nameless = Omit<Found, "scenario">;

function compareReceived(
  codex: Received,
  heddle: Received,
): Omit<Comparison, "found"> & { found: readonly Nameless[] } {
  const theirs = codex.messages.map((message) => ({ message, word: `${codex.client}: ${wordOf(message)}` }));
  const ours = heddle.messages.map((message) => ({ message, word: `${codex.client}: ${wordOf(message)}` }));
  const { pairs, left, right } = align(theirs, ours);
  const found: Nameless[] = [];
  const unmatched = [...right];
  for (const entry of left) {
    const at = unmatched.findIndex(({ word }) => word === entry.word);
    const [counterpart] = at < 0 ? [] : unmatched.splice(at, 1);
    if (counterpart === undefined) found.push({ kind: "missing", message: entry.word, path: "", codex: entry.message });
    else {
      found.push({ kind: "moved", message: entry.word, path: "" });
      pairs.push([entry, counterpart]);
    }
  }
  for (const { word, message } of unmatched) found.push({ kind: "added", message: word, path: "", heddle: message });
  const different = pairs.map(([one, other]) => fieldsOf(one.word, "", one.message, other.message));
  found.push(...different.flat());
  return {
    found,
    compared: pairs.length,
    same: different.filter((fields) => fields.every(({ codex: theirs }) => theirs === undefined)).length,
  };
}

/** What a message is called: its method, and the kind of its item or status. */
export function wordOf(message: Message): string {
  const { method, params, answerTo, missed } = message;
  if (missed !== undefined) return `missed ${inWords(missed)}`;
  if (method === undefined) return answerTo === undefined ? "no message" : `answer ${inWords(answerTo)}`;
  const { item, status } = asFields(params);
  const kind = asFields(item)["type"] ?? asFields(status)["type"];
  return `${"id" in message ? "ask " : ""}${inWords(method)}${kind === undefined ? "" : ` ${inWords(kind)}`}`;
}

function inWords(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface Entry {
  readonly word: string;
  readonly message: Message;
}

interface Alignment {
  readonly pairs: [Entry, Entry][];
  readonly left: readonly Entry[];
  readonly right: readonly Entry[];
}

/** The longest common subsequence by words; what stands outside of it is left over on its side. */
function align(left: readonly Entry[], right: readonly Entry[]): Alignment {
  const lengths = Array.from({ length: left.length + 1 }, () => Array.from({ length: right.length + 1 }, () => 0));
  const get = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const row = lengths[i];
      if (row === undefined) continue;
      row[j] = left[i]?.word === right[j]?.word ? get(i + 1, j + 1) + 1 : Math.max(get(i + 1, j), get(i, j + 1));
    }
  }
  const result = { pairs: new Array<[Entry, Entry]>(), left: new Array<Entry>(), right: new Array<Entry>() };
  let [i, j] = [0, 0];
  for (;;) {
    const [one, other] = [left[i], right[j]];
    if (one === undefined && other === undefined) return result;
    if (one !== undefined && other !== undefined && one.word === other.word) {
      result.pairs.push([one, other]);
      [i, j] = [i + 1, j + 1];
    } else if (other === undefined || (one !== undefined && get(i + 1, j) >= get(i, j + 1))) {
      if (one !== undefined) result.left.push(one);
      i += 1;
    } else {
      result.right.push(other);
      j += 1;
    }
  }
}

function fieldsOf(message: string, path: string, codex: unknown, heddle: unknown): readonly Nameless[] {
  if (JSON.stringify(codex) === JSON.stringify(heddle)) return [];
  const isBoth = isObject(codex) && isObject(heddle) && Array.isArray(codex) === Array.isArray(heddle);
  if (!isBoth) return [{ kind: "field", message, path, codex, heddle }];
  const [theirs, ours] = [new Map(Object.entries(codex)), new Map(Object.entries(heddle))];
  return [...new Set([...theirs.keys(), ...ours.keys()])].flatMap((name) =>
    fieldsOf(message, path === "" ? name : `${path}.${name}`, theirs.get(name), ours.get(name)),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function asFields(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? { ...value } : {};
}
