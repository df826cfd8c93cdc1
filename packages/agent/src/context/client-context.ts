/** Context that clients add to an input, by names of their own. Pure. */
import type { ClientContext } from "@heddle/protocol";
import { entryOf, userText, type ContextEntry } from "./context-entry.ts";

/** The text the model reads; nothing in it ends the tag. */
export function clientContextText({ name, kind, text }: ClientContext): string {
  const mark = kind === "untrusted" ? ' trusted="no"' : "";
  return `${opening(name)}${mark}>\n${text.replaceAll(/<(?=\/context\b)/gi, "&lt;")}\n</context>`;
}

/** undefined: the conversation holds the same under this name already. After a compaction it is sent again. */
export function newClientContext(
  entries: readonly ContextEntry[],
  { name, kind, text }: ClientContext,
  turnId: string,
): ContextEntry | undefined {
  const before = entries.map(noteText).findLast((note) => note?.startsWith(opening(name)));
  if (before === text) return undefined;
  const input = userText(text);
  return entryOf("note", kind === "application" ? { ...input, role: "developer" } : input, turnId);
}

function opening(name: string): string {
  return `<context source=${JSON.stringify(name)}`;
}

function noteText({ role, input }: ContextEntry): string | undefined {
  const [part] = role === "note" && input.kind === "user" ? input.parts : [];
  return part?.type === "text" ? part.text : undefined;
}
