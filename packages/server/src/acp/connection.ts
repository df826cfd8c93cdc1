/** One client of the Agent Client Protocol: what it can show, its sessions, and its prompts that are not answered yet. */
import type { AcpClient, AcpRequest } from "@heddle/dialects/acp";
import { HeddleError, type Author } from "@heddle/protocol";
import { authorOf, type Principal } from "../access/principals.ts";
import type { ServerContext } from "../rpc/call.ts";
import { RPC, RpcError, type Answered, type Peer, type RequestId } from "../rpc/peer.ts";
import type { AcpSession } from "./session.ts";

export interface AcpConnectionOptions {
  readonly peer: Peer;
  readonly principal: Principal;
  readonly server: ServerContext;
}

/** More at once is no editor. */
const MAX_SESSIONS = 200;
/** What may wait for a slow reader before texts are left out until their end. */
const MAX_WAITING_CHARS = 1024 * 1024;

export class AcpConnection implements Disposable {
  readonly server: ServerContext;
  readonly principal: Principal;
  readonly by: Author;
  readonly #peer: Peer;
  readonly #sessions = new Map<string, AcpSession>();
  readonly #prompts = new Map<RequestId, AbortController>();
  #waiting: (() => void)[] = [];
  #nextId = 1;
  /** undefined: it has not sent `initialize` yet. */
  client: AcpClient | undefined;

  constructor({ peer, principal, server }: AcpConnectionOptions) {
    this.#peer = peer;
    this.server = server;
    this.principal = principal;
    this.by = authorOf(principal);
  }

  get isBehind(): boolean {
    return this.#peer.waitingChars > MAX_WAITING_CHARS;
  }

  get isClosed(): boolean {
    return this.#peer.isClosed;
  }

  session(sessionId: string): AcpSession {
    const found = this.#sessions.get(sessionId);
    if (found !== undefined) return found;
    throw new HeddleError(
      "thread.not-found",
      `session ${sessionId} is not open here; send session/load or session/resume first`,
    );
  }

  find(sessionId: string): AcpSession | undefined {
    return this.#sessions.get(sessionId);
  }

  add(session: AcpSession): void {
    this.#sessions.get(session.threadId)?.leave();
    if (this.#sessions.size >= MAX_SESSIONS) {
      throw new RpcError(RPC.overloaded, `${MAX_SESSIONS} sessions are open; close one first`);
    }
    this.#sessions.set(session.threadId, session);
  }

  remove(session: AcpSession): void {
    if (this.#sessions.get(session.threadId) === session) this.#sessions.delete(session.threadId);
  }

  notify(method: string, params: Readonly<Record<string, unknown>>): void {
    this.#peer.notify(method, params);
  }

  ask(request: AcpRequest, done: (answer: Answered) => void): RequestId {
    const id = this.#nextId++;
    this.#peer.ask(id, request, done);
    return id;
  }

  /** It was answered at another door. */
  withdraw(requestId: RequestId): void {
    this.#peer.withdraw(requestId);
    this.#peer.notify("$/cancel_request", { requestId });
  }

  /** Resolves when a reader that is behind has taken what waits for it. */
  async room(): Promise<void> {
    if (!this.isBehind || this.isClosed) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  drained(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** The prompt can be cancelled as long as it is not answered. */
  async prompting<T>(requestId: RequestId, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const control = new AbortController();
    this.#prompts.set(requestId, control);
    try {
      return await work(control.signal);
    } finally {
      this.#prompts.delete(requestId);
    }
  }

  cancel(sessionId: string): void {
    this.#sessions.get(sessionId)?.cancel();
  }

  cancelRequest(requestId: RequestId): void {
    this.#prompts.get(requestId)?.abort();
  }

  [Symbol.dispose](): void {
    this.drained();
    for (const session of this.#sessions.values()) session[Symbol.dispose]();
    this.#sessions.clear();
  }
}
