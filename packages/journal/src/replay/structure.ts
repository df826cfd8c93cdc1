/**
 * Whether the events of one stream make sense together: a beginning, one end for everything that begins, answers to what
 * was asked, one agent in a turn, an envelope left before the next. Clocks may jump, so time that runs backwards is a warning.
 */
import { factsIn, textIn, type Entry, type Facts } from "./facts.ts";
import type { Report, Where } from "./findings.ts";

export interface OpenCall {
  readonly callId: string;
  readonly tool: string;
  readonly version: number;
}

interface OpenTurn {
  agent: string | undefined;
  /** By item; each attempt at a call has one of its own. */
  readonly calls: Map<string, OpenCall>;
  readonly settled: Set<string>;
  readonly endedItems: Set<string>;
}

const AUTHOR = /^(?:system|user|(?:user|agent|policy):.+)$/s;

/** The state of one stream, from event to event. */
export class Structure {
  readonly #report: Report;
  readonly #open = new Map<string, OpenTurn>();
  readonly #ended = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #acts = new Set<string>();
  readonly #messages = new Set<string>();
  /** Begun and not ended. */
  readonly #items = new Map<string, { readonly turnId: string; readonly entry: Where }>();
  #current: string | undefined;
  #lastAt = -Infinity;
  #turns = 0;
  #kind: string | undefined;
  #isPartial = false;

  constructor(report: Report) {
    this.#report = report;
  }

  #begin({ type, version, stream }: Entry): void {
    if (version === 1 && /^(?:thread|task)\.created$/.test(type)) this.#kind = type.slice(0, type.indexOf("."));
    // What was imported, and a note beside any thread, are streams of their own; what purges them is the word for threads.
    if (version === 1 && type === "evidence.imported") this.#kind = "import";
    if (version === 1 && type === "evidence.noted") this.#kind = "note";
    if ((this.#kind === "import" || this.#kind === "note") && type === "thread.deleted") return;
    const needed = /^(?:thread|turn|tool|envelope|gate)\./.test(type)
      ? "thread"
      : type.startsWith("task.")
        ? "task"
        : undefined;
    if (needed === undefined || needed === this.#kind || this.#kind === "reported") return;
    this.#kind = "reported";
    this.#report("no_beginning", `${stream} holds ${type} and does not begin with ${needed}.created`, {
      stream,
      version,
    });
  }

  #author({ author: by, stream, version, body }: Entry): void {
    const where = { stream, version };
    if (!AUTHOR.test(by))
      this.#report("author_changed", `event ${version} has an author that no writer has: ${by}`, where);
    const turn = body === undefined ? undefined : this.#open.get(textIn(body, "turnId") ?? "");
    if (turn?.agent === undefined || !by.startsWith("agent:") || by === turn.agent) return;
    this.#report("author_changed", `event ${version} is by ${by} in a turn of ${turn.agent}`, where);
  }

  /** An answer without its question; the question may have been purged. */
  #orphan(message: string, entry: Entry): void {
    if (!this.#isPartial) this.#report("orphan_reply", message, entry);
  }

  #turnEvent(entry: Entry, body: Facts): void {
    const id = textIn(body, "turnId") ?? "";
    const turn = this.#open.get(id);
    switch (entry.type) {
      case "turn.admitted":
        this.#turns += 1;
        if (turn !== undefined || this.#ended.has(id))
          this.#report("ended_twice", `turn ${id} begins a second time`, entry);
        this.#open.set(id, { agent: undefined, calls: new Map(), settled: new Set(), endedItems: new Set() });
        return;
      case "turn.started":
        if (turn !== undefined) turn.agent = `agent:${textIn(body, "runner") ?? ""}`;
        return;
      case "turn.completed":
        if (this.#ended.has(id)) this.#report("ended_twice", `turn ${id} ends a second time`, entry);
        else if (turn === undefined) this.#orphan(`turn ${id} ends and never began`, entry);
        for (const { tool, callId, version } of turn?.calls.values() ?? [])
          this.#report("unfinished_call", `the turn ends, and the call ${callId} of ${tool} has no outcome`, {
            ...entry,
            version,
          });
        this.#ended.add(id);
        this.#open.delete(id);
        return;
      case "tool.intended":
      case "tool.settled":
        this.#callEvent(entry, { body, turn });
        return;
      case "item.started": {
        const item = textIn(factsIn(body, "item"), "id") ?? "";
        this.#items.set(item, { turnId: id, entry: { stream: entry.stream, version: entry.version } });
        return;
      }
      case "item.completed": {
        const item = textIn(factsIn(body, "item"), "id") ?? "";
        this.#items.delete(item);
        if (turn?.endedItems.has(item) === true) this.#report("ended_twice", `item ${item} ends a second time`, entry);
        turn?.endedItems.add(item);
        return;
      }
      default:
        return;
    }
  }

  #callEvent(entry: Entry, { body, turn }: { readonly body: Facts; readonly turn: OpenTurn | undefined }): void {
    const [callId = "", itemId = "", tool = ""] = ["callId", "itemId", "tool"].map((key) => textIn(body, key));
    if (entry.type === "tool.intended") {
      if (turn === undefined) this.#orphan(`the call ${callId} of ${tool} begins outside any open turn`, entry);
      turn?.calls.set(itemId, { callId, tool, version: entry.version });
      return;
    }
    const outcome = textIn(body, "outcome");
    const wasOpen = turn?.calls.delete(itemId) === true;
    if (turn?.settled.has(itemId) === true)
      this.#report("ended_twice", `the call ${callId} of ${tool} has a second outcome`, entry);
    else if (!wasOpen && (outcome === "ok" || outcome === "unknown"))
      this.#orphan(`the call ${callId} of ${tool} has an outcome and never began`, entry);
    turn?.settled.add(itemId);
  }

  #answers(entry: Entry, body: Facts): void {
    switch (entry.type) {
      case "approval.requested":
        this.#asked.add(textIn(body, "approvalId") ?? "");
        return;
      case "approval.resolved":
        if (!this.#asked.delete(textIn(body, "approvalId") ?? ""))
          this.#orphan("an answer to a question that nobody asked", entry);
        return;
      case "client.intended":
        this.#acts.add(textIn(body, "actId") ?? "");
        return;
      case "client.settled":
        if (!this.#acts.delete(textIn(body, "actId") ?? ""))
          this.#orphan("an outcome of something that never began", entry);
        return;
      case "message.received":
      case "message.settled":
        this.#message(entry, textIn(body, "messageId") ?? "");
        this.#reply(entry, body);
        return;
      case "evidence.noted":
        this.#reply(entry, body);
        return;
      default:
        return;
    }
  }

  /** Delivered once, and ended once. */
  #message(entry: Entry, id: string): void {
    const name = `${entry.type} ${id}`;
    if (this.#messages.has(name)) this.#report("ended_twice", `${name} comes a second time`, entry);
    this.#messages.add(name);
  }

  #reply(entry: Entry, body: Facts): void {
    if (entry.isOrphan === true)
      this.#report("orphan_reply", `a reply to ${textIn(body, "replyTo") ?? ""}, which is not an earlier entry`, entry);
  }

  #envelope(entry: Entry, body: Facts): void {
    const hash = textIn(body, "envelopeHash") ?? "";
    if (entry.type === "envelope.left") {
      if (this.#current !== hash && !this.#isPartial)
        this.#report("not_left", "an envelope is left that the thread is not in", entry);
      this.#current = undefined;
    } else if (entry.type === "envelope.entered") {
      if (this.#current !== undefined)
        this.#report("not_left", "an envelope is entered, and the one before it was not left", entry);
      this.#current = hash;
    }
  }

  get turns(): number {
    return this.#turns;
  }

  take(entry: Entry): void {
    const { body, at, version } = entry;
    this.#begin(entry);
    if (at < this.#lastAt)
      this.#report(
        "clock_backwards",
        `event ${version} is ${this.#lastAt - at} ms older than the one before it`,
        entry,
      );
    this.#lastAt = at;
    this.#author(entry);
    this.#isPartial ||= entry.isUnread === true;
    if (body === undefined) return;
    this.#turnEvent(entry, body);
    this.#answers(entry, body);
    this.#envelope(entry, body);
  }

  end(): { readonly turns: number; readonly openTurns: readonly string[] } {
    for (const [item, { turnId, entry }] of this.#items) {
      // A command may outlive its turn for a moment; by the end of the stream it has ended.
      if (!this.#open.has(turnId) && !this.#isPartial)
        this.#report("unfinished_item", `its turn ended, and item ${item} has no end`, entry);
    }
    return { turns: this.#turns, openTurns: [...this.#open.keys()] };
  }
}
