/**
 * One client of the chat dialect: who it is, what it listens to, and what it is told. A reader that is behind loses nothing
 * in silence: its chats are left out until it has caught up, then it is told how far they have come (`resync`), and asks for
 * what it lacks with chat.events.list.
 */
import type { Author } from "@heddle/protocol";
import { matchesTopic, topicFor, type ChatEvent } from "@heddle/dialects/chat";
import { Held } from "../rpc/held.ts";
import type { Peer } from "../rpc/peer.ts";
import { authorOf, type Principal } from "../access/principals.ts";

/** What may wait for one reader before its chats are left out; far below what would end its connection. */
const MAX_WAITING_CHARS = 4 * 1024 * 1024;
const MAX_SUBSCRIPTIONS = 100;

export class ChatConnection {
  readonly principal: Principal;
  readonly by: Author;
  readonly #peer: Peer;
  readonly #subscriptions = new Map<string, string>();
  /** Chats that were left out, and how far they have come. */
  readonly #behind = new Map<string, number>();
  readonly #held = new Held();
  #nextId = 1;

  constructor(peer: Peer, principal: Principal) {
    this.#peer = peer;
    this.principal = principal;
    this.by = authorOf(principal);
  }

  get isIdle(): boolean {
    return this.#peer.isIdle;
  }

  close(): void {
    this.#peer.close();
  }

  /** undefined: it has as many as anybody may have. */
  subscribe(topic: string): string | undefined {
    if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS) return undefined;
    const id = `sub_${this.#nextId++}`;
    this.#subscriptions.set(id, topic);
    return id;
  }

  unsubscribe(id: string): boolean {
    return this.#subscriptions.delete(id);
  }

  get isListening(): boolean {
    return this.#subscriptions.size > 0;
  }

  /** Nothing is told until it is released: an answer must not be overtaken by what it announces. */
  hold(chatId?: string): Disposable {
    return this.#held.hold(chatId);
  }

  tell(event: ChatEvent, isLive: boolean): void {
    if (this.#methodsFor(event.topic).length === 0) return;
    const send = (): void => {
      for (const method of this.#methodsFor(event.topic)) this.#send(method, event, isLive);
    };
    if (!this.#held.tell(event.params.chat_id, send)) this.#leaveOut(event);
  }

  /** Events of the past that were asked for, in the words of one subscription. */
  replay(topic: string, events: readonly ChatEvent[]): void {
    for (const event of events) {
      const method = topicFor(topic, event.topic);
      if (matchesTopic(topic, method)) this.#send(method, event, false);
    }
  }

  /** Something that is no event of one chat. */
  notify(topic: string, params: Readonly<Record<string, unknown>>): void {
    for (const method of this.#methodsFor(topic)) this.#peer.notify(method, params);
  }

  resync(chatId: string, lastSeq: number, reason: string): void {
    this.#peer.notify("resync", { chat_id: chatId, last_seq: lastSeq, reason, schema: 1 });
  }

  /** It has taken everything that waited. */
  drained(): void {
    for (const [chatId, lastSeq] of this.#behind) this.resync(chatId, lastSeq, "the reader was too slow");
    this.#behind.clear();
  }

  #send(method: string, event: ChatEvent, isLive: boolean): void {
    const isBehind = this.#behind.has(event.params.chat_id) || this.#peer.waitingChars > MAX_WAITING_CHARS;
    if (isBehind) return this.#leaveOut(event);
    if (isLive) this.#peer.notifyDelta(method, event.params);
    else this.#peer.notify(method, event.params);
  }

  #leaveOut({ params }: ChatEvent): void {
    this.#behind.set(params.chat_id, Math.max(params.seq, this.#behind.get(params.chat_id) ?? 0));
  }

  /** Once for each name it is known by, however many subscriptions want it. */
  #methodsFor(topic: string): readonly string[] {
    const methods = new Set<string>();
    for (const pattern of this.#subscriptions.values()) {
      const method = topicFor(pattern, topic);
      if (matchesTopic(pattern, method)) methods.add(method);
    }
    return [...methods];
  }
}
