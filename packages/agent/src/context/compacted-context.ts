/**
 * What a stored compaction makes of the conversation before it. Pure, and complete in the event: resuming a thread
 * decides nothing again. A cut is only before a message or an answer, so that no result is without its call.
 */
import type { EventOf, InputPart, PlanStep } from "@heddle/protocol";
import { fitText } from "@heddle/tools";
import { entryOf, userText, type ContextEntry } from "./context-entry.ts";

type Compacted = EventOf<"context.compacted">;

export function afterCompaction(entries: readonly ContextEntry[], body: Compacted): ContextEntry[] {
  const cut = cutOf(entries, body.keptFrom);
  const kept = new Map(body.keptMessages.map(({ name, maxBytes }) => [name, maxBytes]));
  const surroundings = entries.findLast(({ role }) => role === "surroundings");
  const messages = entries
    .slice(0, cut)
    .filter(({ role, name }) => role === "message" && name !== undefined && kept.has(name))
    .map((entry) => shortened(entry, kept.get(entry.name ?? "")));
  return [
    ...(surroundings === undefined ? [] : [surroundings]),
    ...messages,
    entryOf("summary", userText(summaryText(body))),
    ...entries.slice(cut).filter(({ role }) => role !== "surroundings"),
  ];
}

function cutOf(entries: readonly ContextEntry[], keptFrom: string | undefined): number {
  const found = keptFrom === undefined ? -1 : entries.findIndex(({ name }) => name === keptFrom);
  return found === -1 ? entries.length : found;
}

/** Text only: a message that has to be cut has no room for its images. */
function shortened(entry: ContextEntry, maxBytes: number | undefined): ContextEntry {
  if (maxBytes === undefined || entry.input.kind !== "user") return entry;
  const text = fitText(textOf(entry.input.parts), maxBytes);
  return entryOf("message", userText(text), entry.name);
}

export function textOf(parts: readonly InputPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : `[image ${part.mediaType}]`)).join("\n");
}

export function summaryText({
  summary,
  plan,
  openCommands,
}: Pick<Compacted, "summary" | "plan" | "openCommands">): string {
  const parts = [INTRODUCTION, `<summary>\n${summary}\n</summary>`];
  if (plan.length > 0) parts.push(`Your plan as it stands:\n${plan.map(planLine).join("\n")}`);
  if (openCommands.length > 0) {
    const lines = openCommands.map(({ processId, command }) => `- session ${processId}: ${command}`);
    parts.push(`Commands that are still running:\n${lines.join("\n")}`);
  }
  return parts.join("\n\n");
}

const INTRODUCTION =
  "Earlier parts of this conversation were left out to save room. You wrote this summary of them; continue from it, and look " +
  "again at files and state where you need details.";

function planLine({ text, status }: PlanStep): string {
  const mark = { pending: " ", inProgress: ">", completed: "x" }[status];
  return `[${mark}] ${text}`;
}
