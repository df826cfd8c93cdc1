/**
 * Which connection speaks for a session of an outside agent. There is one at a time: whoever attaches takes the place of the one
 * before, whose end is nothing to the session any more. What runs is the engine's; this is lost with the server.
 *
 *   reserved ─▶ attached ──connection ends──▶ alone (keep) ─▶ attached by the same user
 *                  │    └────────────────────▶ stopped (stop)
 *                  └─another attaches─▶ attached; the first is told `envelope/replaced`
 *   its turn ends, whatever its state ─▶ forgotten; who speaks for it is told `envelope/ended`
 */
import type { Heddle, OutsideDelta, TurnHandle } from "@heddle/agent";
import { HeddleError, type Author } from "@heddle/protocol";
import type { OnDisconnect, SessionNotification, SessionSaid } from "@heddle/protocol/sessions";
import { isOwner } from "../../access/full-access.ts";
import type { Connection } from "../../rpc/connection.ts";
import type { RequestId } from "../../rpc/peer.ts";

/** Each has a sandbox of its own. */
const MAX_SESSIONS = 256;

export interface SessionFacts {
  readonly by: Author;
  readonly agentName?: string | undefined;
  readonly clientId?: string | undefined;
  readonly onDisconnect: OnDisconnect;
  readonly idleMs: number;
}

type Named = Pick<SessionFacts, "by" | "agentName" | "clientId">;

export interface ListedSession extends Omit<SessionFacts, "clientId"> {
  readonly threadId: string;
  readonly turnId: string;
  readonly isAttached: boolean;
}

interface Entry extends SessionFacts {
  readonly threadId: string;
  readonly turnId: string;
  /** `tool/call` requests of the connection that speaks for it, by call. */
  readonly requests: Map<string, RequestId>;
  connection: Connection | undefined;
  /** Its connection's end is nothing to it any more. */
  detach: () => void;
}

export class Sessions {
  readonly #heddle: Heddle;
  readonly #entries = new Map<string, Entry>();
  /** Sessions that are being entered. */
  readonly #entering = new Set<Named>();

  constructor(heddle: Heddle) {
    this.#heddle = heddle;
  }

  /** Held while a session is entered: two at once cannot have one name, nor be more than there may be. */
  reserve(entering: Named): Disposable {
    if (this.#entries.size + this.#entering.size >= MAX_SESSIONS)
      throw new HeddleError("door.overloaded", `${MAX_SESSIONS} sessions are open; leave one`);
    this.#refuseTaken(entering);
    this.#entering.add(entering);
    return { [Symbol.dispose]: () => void this.#entering.delete(entering) };
  }

  /** Of a session that this connection has entered, the same one again by its client id included. */
  async entered(
    handle: Pick<TurnHandle, "threadId" | "turnId" | "done">,
    facts: SessionFacts,
    connection: Connection,
  ): Promise<void> {
    const { threadId, turnId, done } = handle;
    if (!this.#entries.has(turnId)) {
      const entry = { ...facts, threadId, turnId, requests: new Map(), connection: undefined, detach: () => undefined };
      this.#entries.set(turnId, entry);
      const deltas = await this.#listen(entry);
      const forget = (): void => {
        deltas[Symbol.dispose]();
        this.#forget(entry);
      };
      done.then(({ body: { status, failure } }) => {
        this.#say(entry, "envelope/ended", { turnId, threadId, status, ...(failure === undefined ? {} : { failure }) });
        forget();
      }, forget);
    }
    this.attach(turnId, connection);
  }

  /** From here on this connection speaks for it. False: it has ended. */
  attach(turnId: string, connection: Connection): boolean {
    const entry = this.#entries.get(turnId);
    if (entry === undefined) return false;
    requireOwn(entry, connection);
    if (entry.connection === connection) return true;
    const { threadId } = entry;
    this.#say(entry, "envelope/replaced", { turnId, threadId });
    entry.detach();
    entry.requests.clear();
    entry.connection = connection;
    entry.detach = connection.ends.add({ [Symbol.asyncDispose]: () => this.#left(entry, connection) });
    return true;
  }

  /** Throws unless this connection speaks for it. A session that has ended is anybody's to ask about. */
  require(turnId: string, connection: Connection): void {
    const entry = this.#entries.get(turnId);
    if (entry === undefined) return;
    requireOwn(entry, connection);
    if (entry.connection === connection) return;
    const how = entry.connection === undefined ? "its connection has ended" : "another connection is its agent now";
    throw new HeddleError("session.elsewhere", `${how}; take session ${turnId} over with envelope/attach`);
  }

  /** What the call puts out names this request, until it is disposed. */
  request(turnId: string, callId: string, requestId: RequestId): Disposable {
    const requests = this.#entries.get(turnId)?.requests;
    requests?.set(callId, requestId);
    return {
      [Symbol.dispose]() {
        if (requests?.get(callId) === requestId) requests.delete(callId);
      },
    };
  }

  /** Those of the caller; an owner sees all. */
  list({ by, principal }: Pick<Connection, "by" | "principal">): readonly ListedSession[] {
    const seen = [...this.#entries.values()].filter((entry) => entry.by === by || isOwner(principal));
    return seen.map(({ requests: _requests, detach: _detach, clientId: _clientId, connection, ...entry }) => ({
      ...entry,
      isAttached: connection !== undefined,
    }));
  }

  #refuseTaken(asked: Named): void {
    const open = [...this.#entries.values()].find((entry) => isTaken(entry, asked));
    if (open === undefined && ![...this.#entering].some((entering) => isTaken(entering, asked))) return;
    const details = open === undefined ? {} : { turnId: open.turnId, threadId: open.threadId };
    const message = "an agent of this name has a session already; attach to it, leave it, or take another name";
    throw new HeddleError("session.exists", message, { details });
  }

  async #listen(entry: Entry): Promise<Disposable> {
    const { by, turnId } = entry;
    const say = (delta: OutsideDelta): void => this.#output(entry, delta);
    try {
      return await (await this.#heddle.as(by).outside()).listen(turnId, say);
    } catch {
      // It has ended meanwhile.
      return { [Symbol.dispose]: () => undefined };
    }
  }

  #output({ connection, requests, ...entry }: Entry, { callId, itemId, delta }: OutsideDelta): void {
    const requestId = requests.get(callId);
    const { turnId, threadId } = entry;
    const params = { turnId, threadId, callId, ...(requestId === undefined ? {} : { requestId }), itemId, delta };
    connection?.sendDelta({ method: "tool/output", params });
  }

  #say<N extends SessionNotification>({ connection }: Entry, method: N, params: SessionSaid[N]): void {
    connection?.tell({ method, params });
  }

  #forget(entry: Entry): void {
    entry.detach();
    if (this.#entries.get(entry.turnId) === entry) this.#entries.delete(entry.turnId);
  }

  /** The end of a connection that was replaced comes late, and is no longer asked about. */
  async #left(entry: Entry, connection: Connection): Promise<void> {
    if (entry.connection !== connection) return;
    entry.connection = undefined;
    entry.requests.clear();
    if (entry.onDisconnect === "keep") return;
    const reason = { code: "turn.interrupted", message: "the client that was its agent has left" } as const;
    // An end that is on record already is no fault.
    await this.#heddle
      .as(entry.by)
      .interrupt(entry.turnId, reason)
      .catch(() => undefined);
  }
}

/** The same request again is the same session, whose name is its own. */
function isTaken({ by, agentName, clientId }: Named, asked: Named): boolean {
  if (agentName === undefined || agentName !== asked.agentName || by !== asked.by) return false;
  return clientId === undefined || clientId !== asked.clientId;
}

function requireOwn({ by, turnId }: Pick<Entry, "by" | "turnId">, connection: Connection): void {
  if (by !== connection.by) throw new HeddleError("door.forbidden", `turn ${turnId} belongs to another client`);
}
