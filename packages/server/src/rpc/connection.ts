/** One client: its peer, who it is, and which notifications it wants. */
import type { Author } from "@heddle/protocol";
import type { CodexNotification, CodexServerRequest } from "@heddle/dialects/codex-app-server";
import { authorOf, type Principal } from "../access/principals.ts";
import { Ends } from "./ends.ts";
import { Held } from "./held.ts";
import type { Answered, Peer, RequestId } from "./peer.ts";
import type { Follower } from "../followers/subscribe.ts";

export interface ClientInfo {
  readonly name: string;
  readonly version: string;
  readonly isExperimental: boolean;
  readonly mutedMethods: ReadonlySet<string>;
}

/** Only sent to clients with `experimentalApi`. */
const EXPERIMENTAL: ReadonlySet<string> = new Set(["thread/settings/updated", "thread/queue/changed"]);

export class Connection implements Follower {
  readonly #peer: Peer;
  readonly principal: Principal;
  readonly by: Author;
  readonly #held = new Held();
  /** What must not outlive it. */
  readonly ends = new Ends();
  /** undefined: it has not said `initialize` yet. */
  client: ClientInfo | undefined;

  constructor(peer: Peer, principal: Principal) {
    this.#peer = peer;
    this.principal = principal;
    this.by = authorOf(principal);
  }

  /** A client of sessions is told what it sent wrongly; one of Codex is not, as in the original. */
  answerMalformed(): void {
    this.#peer.answersMalformed = true;
  }

  get isClosed(): boolean {
    return this.#peer.isClosed;
  }

  get isIdle(): boolean {
    return this.#peer.isIdle;
  }

  /** Sent at once, also while notifications are held back. */
  notify({ method, params }: CodexNotification): void {
    if (this.#isSubscribed(method)) this.#peer.notify(method, params);
  }

  hold(threadId?: string): Disposable {
    return this.#held.hold(threadId);
  }

  tell(notification: CodexNotification): void {
    this.#later(notification.params, () => this.notify(notification));
  }

  sendDelta({ method, params }: CodexNotification): void {
    if (this.#isSubscribed(method)) this.#later(params, () => this.#peer.notifyDelta(method, params));
  }

  ask(id: RequestId, request: CodexServerRequest, done: (answer: Answered) => void): void {
    this.#later(request.params, () => this.#peer.ask(id, request, done));
  }

  withdraw(id: RequestId, threadId: string): void {
    this.#later({ threadId }, () => this.#peer.withdraw(id));
  }

  close(): void {
    this.#peer.close();
  }

  #later({ threadId }: Readonly<Record<string, unknown>>, tell: () => void): void {
    if (!this.#held.tell(typeof threadId === "string" ? threadId : undefined, tell)) this.close();
  }

  #isSubscribed(method: string): boolean {
    if (this.client === undefined || this.client.mutedMethods.has(method)) return false;
    return this.client.isExperimental || !EXPERIMENTAL.has(method);
  }
}
