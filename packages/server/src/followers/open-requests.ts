/**
 * What followers of a thread are asked and have not answered: each of them under the same id, the first answer counts, and
 * later followers are asked too.
 *
 *   open ─▶ put to everyone ─▶ answered by one ─▶ stored ─▶ (the journal says so) ─▶ closed for all
 *                          └─▶ refused by all  ─▶ stored
 *                          └─▶ no followers    ─▶ waits for one, or is given up after a while
 */
import { reasonOf, type Author } from "@heddle/protocol";
import type { CodexServerRequest } from "@heddle/dialects/codex-app-server";
import type { Answered, RequestId } from "../rpc/peer.ts";
import type { Follower } from "./subscribe.ts";

export interface FollowerRequest {
  readonly request: CodexServerRequest;
  /** Every follower is notified when it is closed. */
  readonly isAnnouncedWhenClosed: boolean;
  /** Stores the answer; an error when every follower refused. */
  answered(answer: Exclude<Answered, { kind: "gone" }>, by: Author): Promise<void>;
  /** There has been no follower for a while; absent: it stays open. */
  abandoned?(): Promise<void>;
}

export interface OpenRequestsOptions {
  readonly threadId: string;
  readonly followers: ReadonlySet<Follower>;
  readonly nextRequestId: () => RequestId;
  readonly log: (line: string) => void;
  /** How long a client may take to reconnect. */
  readonly graceMs?: number;
}

interface Open extends FollowerRequest {
  readonly id: RequestId;
  /** What each who refused has said. */
  readonly refusals: Map<Follower, Extract<Answered, { kind: "error" }>>;
}

const GRACE_MS = 5_000;

export class OpenRequests implements Disposable {
  readonly #options: OpenRequestsOptions;
  /** By the approval or the item that they are about. */
  readonly #open = new Map<string, Open>();
  #grace: NodeJS.Timeout | undefined;

  constructor(options: OpenRequestsOptions) {
    this.#options = options;
  }

  open(key: string, request: FollowerRequest): void {
    const open: Open = { ...request, id: this.#options.nextRequestId(), refusals: new Map() };
    this.#open.set(key, open);
    for (const follower of this.#options.followers) this.#put(follower, key, open);
    this.#watch();
  }

  close(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    const { threadId, followers } = this.#options;
    for (const follower of followers) {
      follower.withdraw(open.id, threadId);
      if (!open.isAnnouncedWhenClosed) continue;
      follower.tell({ method: "serverRequest/resolved", params: { threadId, requestId: open.id } });
    }
  }

  joined(follower: Follower): void {
    for (const [key, open] of this.#open) this.#put(follower, key, open);
    this.#watch();
  }

  /** Questions alone: a tool that a client runs already is not run twice. */
  repeat(follower: Follower): void {
    for (const [key, open] of this.#open) if (open.isAnnouncedWhenClosed) this.#put(follower, key, open);
  }

  left(follower: Follower): void {
    for (const open of this.#open.values()) {
      follower.withdraw(open.id, this.#options.threadId);
      open.refusals.delete(follower);
      this.#storeRefusal(open);
    }
    this.#watch();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#grace);
  }

  #put(follower: Follower, key: string, open: Open): void {
    follower.ask(open.id, open.request, (answer) => this.#answered(follower, key, answer));
  }

  #answered(follower: Follower, key: string, answer: Answered): void {
    const open = this.#open.get(key);
    // `gone`: it stays open for the next follower.
    if (open === undefined || answer.kind === "gone") return;
    if (answer.kind === "result") return this.#store(open.answered(answer, follower.by));
    open.refusals.set(follower, answer);
    this.#storeRefusal(open);
  }

  /** Once all who follow have refused: whoever has not may still answer, until it leaves. */
  #storeRefusal(open: Open): void {
    const [last] = [...open.refusals].slice(-1);
    if (last === undefined || [...this.#options.followers].some((other) => !open.refusals.has(other))) return;
    const [{ by }, refusal] = last;
    this.#store(open.answered(refusal, by));
  }

  /** The timer runs while requests are open and there is no follower. */
  #watch(): void {
    const { followers, graceMs = GRACE_MS } = this.#options;
    const isAlone = followers.size === 0 && this.#open.size > 0;
    if (!isAlone) {
      clearTimeout(this.#grace);
      this.#grace = undefined;
      return;
    }
    this.#grace ??= setTimeout(() => this.#giveUp(), graceMs).unref();
  }

  #giveUp(): void {
    this.#grace = undefined;
    for (const open of this.#open.values()) if (open.abandoned !== undefined) this.#store(open.abandoned());
  }

  #store(storing: Promise<void>): void {
    storing.catch((error: unknown) => this.#options.log(`an answer could not be stored: ${reasonOf(error)}`));
  }
}
