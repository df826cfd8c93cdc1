/** What items say as entries of the evidence, and the parts that entries are made of. */
import type { EventOf, EvidenceClaim, EvidenceRef, Item, ItemStatus } from "@heddle/protocol";
import { inputText, of, plain } from "./entry-text.ts";

export interface EntryFacts {
  readonly claim: EvidenceClaim;
  readonly subject: EvidenceRef;
  readonly refs: readonly EvidenceRef[];
  readonly tags: readonly string[];
  readonly turn: string | undefined;
  readonly replyTo: string | undefined;
  readonly text: string;
}

export type Said = Pick<EntryFacts, "claim" | "subject" | "text"> & Partial<EntryFacts>;

export const NO_REFS: readonly EvidenceRef[] = [];
export const NO_TAGS: readonly string[] = [];

/**
 * Only what was said to its end and changed is a fact; a command's output is in `tool.settled`, unless there is more of it:
 * then it is kept whole under its hash.
 */
export function itemFacts(turnId: string, item: Item): Said | undefined {
  if (item.type === "agentMessage") {
    if (item.isPartial === true || item.phase === "commentary" || item.text === "") return undefined;
    return { claim: "conclusion", subject: of("turn", turnId), text: item.text };
  }
  if (item.type === "commandExecution" && item.outputBlob !== undefined) {
    return {
      claim: "step",
      subject: of("turn", turnId),
      text: `whole output of ${item.command}\n${item.output}`,
      refs: [of("blob", item.outputBlob)],
      tags: item.status === "completed" ? NO_TAGS : [item.status.toLowerCase()],
    };
  }
  if (item.type !== "fileChange") return undefined;
  const files = item.changes
    .slice(0, MAX_REFS)
    .flatMap(({ path, movedTo }) => (movedTo === undefined ? [path] : [path, movedTo]));
  return {
    claim: "step",
    subject: of("turn", turnId),
    text: item.changes.map(({ kind, path, movedTo }) => `${kind} ${path} ${movedTo ?? ""}`).join("\n"),
    refs: uniqueRefs(files.map((path) => of("file", path))),
    tags: item.status === "completed" ? NO_TAGS : [item.status === "declined" ? "denied" : item.status.toLowerCase()],
  };
}

/** What an agent did by itself: of one that carries out its calls itself, the item is all there is. */
export function doneFacts(item: Item): Said | undefined {
  switch (item.type) {
    case "commandExecution":
      return actFacts("command", item.status, `${item.callId} ${item.command}\n${item.output}`);
    case "toolCall":
      return actFacts(item.tool, item.status, `${item.callId} ${plain(item.arguments)}\n${item.output ?? ""}`);
    case "mcpToolCall":
      return actFacts(
        `${item.server}.${item.tool}`,
        item.status,
        `${item.callId} ${plain([item.arguments, item.result])}`,
      );
    default:
      return undefined;
  }
}

function actFacts(tool: string, status: ItemStatus, text: string): Said {
  const tag = status === "declined" ? "denied" : status.toLowerCase();
  return { claim: "step", subject: of("tool", tool), text, tags: status === "completed" ? NO_TAGS : [tag] };
}

type Imported = EventOf<"evidence.imported" | "item.imported" | "thread.imported">;

/** What another home or another program says: nobody here has seen it. */
export function importedFacts(stream: string, body: Imported): Said | undefined {
  if (body.type === "item.imported") return importedItemFacts(stream, body);
  if (body.type === "thread.imported") return importedThreadFacts(body);
  const { keyId, id, author, stream: from } = body.origin;
  return {
    claim: body.claim,
    subject: body.subject,
    text: body.text,
    refs: [...body.refs, of("key", keyId), of("event", id), of("author", author), of("origin", from)],
    tags: [...body.tags, "imported"],
  };
}

function importedItemFacts(stream: string, { item, file, line }: EventOf<"item.imported">): Said | undefined {
  const thread = of("thread", stream);
  const said =
    item.type === "userMessage"
      ? { claim: "goal" as const, subject: thread, text: inputText(item.content) }
      : (itemFacts("", item) ?? doneFacts(item));
  if (said === undefined) return undefined;
  const subject = said.subject.type === "turn" ? thread : said.subject;
  return {
    ...said,
    subject,
    refs: uniqueRefs([...(said.refs ?? []), of("file", file), of("origin", `${file}:${line}`)]),
    tags: [...(said.tags ?? []), "imported"],
  };
}

function importedThreadFacts({ from, handle, file, bytes, sha256, items }: EventOf<"thread.imported">): Said {
  return {
    claim: "step",
    subject: of("runner", from),
    text: `imported ${items} items of ${handle} from ${file}, ${bytes} bytes, ${sha256}`,
    refs: [of("file", file), of("origin", handle)],
    tags: ["imported"],
  };
}

export const MAX_REFS = 32;

export function uniqueRefs(refs: readonly EvidenceRef[]): readonly EvidenceRef[] {
  return [...new Map(refs.map((ref) => [ref.id, ref])).values()];
}
