/**
 * Blanks what is different in each run: ids become words by what they name, in the order they appear; times become 0; paths,
 * versions and process numbers become words. Pieces of one text that follow each other are joined.
 */
import { hostname } from "node:os";
import { NO_HELPER } from "../program.ts";
import type { Message } from "./client.ts";
import type { Received } from "./play.ts";

type Fields = Readonly<Record<string, unknown>>;

export function blankAll(received: readonly Received[], blankPaths: (text: string) => string): readonly Received[] {
  const names = new Names();
  for (const { messages } of received) names.collect(messages);
  return received.map(({ client, messages }) => ({
    client,
    messages: joined(messages.filter((message) => !isAboutMachine(message))).map((message) =>
      blankMessage(message, names, blankPaths),
    ),
  }));
}

function isAboutMachine({ method, params }: Message): boolean {
  return method === "configWarning" && JSON.stringify(params).includes(NO_HELPER);
}

/** Names for ids. The kind of an id is known from the field or the object it stands in. */
class Names {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  collect(value: unknown): void {
    // Kinds of items first: a question about an item comes before the item.
    const kinds = new Map<string, string>();
    visit(value, (fields) => {
      const { id, type } = fields;
      if (typeof id === "string" && typeof type === "string") kinds.set(id, type);
    });
    visit(value, (fields) => {
      const { id } = fields;
      if (typeof id === "string") {
        if ("sessionId" in fields || "cliVersion" in fields) this.#add(id, "thread");
        else if ("itemsView" in fields) this.#add(id, "turn");
        else if (kinds.has(id)) this.#add(id, kinds.get(id) ?? "item");
      }
      for (const [field, inner] of Object.entries(fields)) {
        if (typeof inner !== "string") continue;
        if (/^(threadId|sessionId|reviewThreadId)$/.test(field)) this.#add(inner, "thread");
        else if (/^(turnId|rootTurnId)$/.test(field)) this.#add(inner, "turn");
        else if (field === "itemId") this.#add(inner, kinds.get(inner) ?? "item");
      }
    });
  }

  replace(text: string): string {
    // The id of an item may hold that of its turn.
    const longestFirst = [...this.#names].toSorted(([one], [other]) => other.length - one.length);
    let replaced = text;
    for (const [id, name] of longestFirst) replaced = replaced.replaceAll(id, name);
    return replaced;
  }

  #add(id: string, kind: string): void {
    if (id === "" || this.#names.has(id)) return;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    this.#names.set(id, `{${kind}-${count}}`);
  }
}

function visit(value: unknown, see: (fields: Fields) => void): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) see({ ...value });
  for (const inner of Object.values(value)) visit(inner, see);
}

function blankMessage(message: Message, names: Names, blankPaths: (text: string) => string): Message {
  const blankValue = (field: string, value: unknown): unknown => {
    if (field === "availabilityNux" && value !== null) return "{words}";
    if (typeof value === "number") return /(At|AtMs|durationMs|Seconds)$/.test(field) ? 0 : value;
    if (typeof value === "string") return blankText(field, names.replace(blankPaths(value)));
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((inner) => blankValue(field, inner));
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [names.replace(blankPaths(name)), blankValue(name, inner)]),
    );
  };
  return blankValue("", message) as Message;
}

/** Texts for people about models and skills are each program's own. */
const OWN_WORDS =
  /^(developer_instructions|description|shortDescription|displayName|defaultPrompt|migrationMarkdown|upgradeCopy)$/;

function blankText(field: string, text: string): string {
  if (OWN_WORDS.test(field)) return text === "" ? "" : "{words}";
  if (field === "processId") return "{process}";
  if (field === "serverName" && text === hostname()) return "{host}";
  if (/^Review the (current code )?changes /.test(text)) return "{prompt of a review}";
  if (/[cC]ursor$/.test(field)) return "{cursor}";
  return text
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "{id}")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.-]+Z?/g, "{time}")
    .replaceAll(/\/\d{4}\/\d\d\/\d\d\//g, "/{date}/")
    .replaceAll(/\b[0-9a-f]{40,64}\b/g, "{sha}");
}

/** A text in pieces is one text, wherever it was cut. */
function joined(messages: readonly Message[]): readonly Message[] {
  const all: Message[] = [];
  for (const message of messages) {
    const last = all.at(-1);
    const [piece, before] = [pieceOf(message), last === undefined ? undefined : pieceOf(last)];
    if (piece !== undefined && before !== undefined && piece.of === before.of)
      all[all.length - 1] = { ...message, params: { ...piece.params, delta: before.delta + piece.delta } };
    else all.push(message);
  }
  return all;
}

function pieceOf({ method, params }: Message): { of: string; delta: string; params: object } | undefined {
  if (typeof params !== "object" || params === null || !("delta" in params) || !("itemId" in params)) return undefined;
  return { of: `${String(method)} ${String(params.itemId)}`, delta: String(params.delta), params };
}
