/**
 * What a message may cause, judged again from the record: a command needs a user or the parent of its receiver; a turn that
 * anything else started has a bound on record, and a command of an agent causes no more than its sender was allowed.
 */
import { factsIn, isFacts, textIn, textsIn, type Entry, type Facts } from "./facts.ts";
import type { Report } from "./findings.ts";
import { exceeds, specOf, type Spec } from "./spec.ts";

interface Received {
  /** It says what to do, and a user gave it. */
  readonly isUsers: boolean;
  /** Of an agent's command. */
  readonly senders: Spec | undefined;
}

/** The state of one stream, from event to event. */
export class MessageReplay {
  readonly #report: Report;
  readonly #received = new Map<string, Received>();
  #parentId: string | undefined;

  constructor(report: Report) {
    this.#report = report;
  }

  created(body: Facts): void {
    this.#parentId = textIn(factsIn(body, "parent"), "threadId");
  }

  received(entry: Entry, body: Facts): void {
    const [id = "", role] = [textIn(body, "messageId"), textIn(body, "role")];
    const isCommand = role === "command";
    const isUser = entry.author.startsWith("user");
    const sender = textIn(factsIn(body, "from"), "threadId");
    const isParent = !isUser && sender !== undefined && sender === this.#parentId;
    if (isUser && isFacts(body["from"]))
      this.#report("message_without_authority", `message ${id} of ${entry.author} says that a thread sent it`, entry);
    if (isCommand && !isUser && !isParent)
      this.#report("message_without_authority", `message ${id} is a command, and ${entry.author} may give none`, entry);
    const senders = isCommand && !isUser ? specOf(body["envelope"]) : undefined;
    if (isCommand && !isUser && senders === undefined)
      this.#report("message_without_authority", `command ${id} does not say what its sender was allowed`, entry);
    this.#received.set(id, { isUsers: isCommand && isUser, senders });
  }

  /** The bound of a turn that messages started; undefined: it has none, and needs none. */
  bound(entry: Entry, body: Facts, { isPartial }: { readonly isPartial: boolean }): Spec | undefined {
    if (textIn(body, "task") !== "message") return undefined;
    const bound = specOf(body["bound"]);
    const ids = textsIn(body, "messages") ?? [];
    const known = ids.map((id) => this.#received.get(id));
    if (!isPartial && (ids.length === 0 || known.includes(undefined)))
      this.#report("message_without_authority", "a turn was started by a message that was never received", entry);
    if (bound === undefined) {
      if (known.some((one) => one !== undefined && !one.isUsers))
        this.#report("beyond_message", "messages that are not commands of users started a turn without a limit", entry);
      return undefined;
    }
    for (const { senders } of known.flatMap((one) => (one === undefined ? [] : [one]))) {
      const more = senders === undefined ? undefined : exceeds(bound, senders);
      if (more !== undefined)
        this.#report("beyond_message", `${more} is more than the sender of the command was allowed`, entry);
    }
    return bound;
  }
}
