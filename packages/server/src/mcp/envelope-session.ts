/**
 * A session of one MCP client in one envelope: entered with its first use, left when the client has gone, exactly once. It is a
 * turn like that of any outside agent (decision 31): its calls go one after the other through dispatch.
 *
 *   none ─▶ open ──client gone──▶ left
 *            ├─silent for too long──▶ none: the next call enters again, in the same thread
 *            └─ended by somebody else─▶ ended: calls are refused until the client connects again
 */
import type { OutsideResult, Surface } from "@heddle/agent";
import { HeddleError, reasonOf, uuidv7, type Author, type Failure } from "@heddle/protocol";
import { envelopeHash } from "@heddle/tools";
import { isOwner, refuseFullAccess } from "../access/full-access.ts";
import { folderFor } from "../access/folders.ts";
import type { Principal } from "../access/principals.ts";
import type { DoorContext } from "../http/route.ts";
import type { JsonObject, SurfaceCall } from "./surface.ts";

const ORIGIN = "mcp";

export interface EnvelopeSessionOptions {
  readonly context: DoorContext;
  readonly principal: Principal;
  readonly by: Author;
  readonly envelope: string;
  readonly log: (line: string) => void;
}

interface Open {
  readonly threadId: string;
  readonly turnId: string;
  surface: Surface;
  hash: string;
  /** Set when the turn has ended. */
  end: { readonly failure: Failure | undefined } | undefined;
}

export class EnvelopeSession implements AsyncDisposable {
  readonly #options: EnvelopeSessionOptions;
  readonly #listeners = new Set<() => void>();
  #open: Promise<Open> | undefined;
  #leaving: Promise<void> | undefined;

  constructor(options: EnvelopeSessionOptions) {
    this.#options = options;
  }

  /** What may be called now. */
  async surface(): Promise<Surface> {
    return (await this.#entered()).surface;
  }

  async call({ name, arguments: given, signal, progress }: SurfaceCall): Promise<OutsideResult> {
    const open = await this.#entered();
    const { turnId, hash } = open;
    const outside = await this.#outside();
    const callId = `mcp_${uuidv7()}`;
    const cancel = (): void => {
      outside.cancel(turnId, callId).catch((error: unknown) => this.#options.log(reasonOf(error)));
    };
    let chars = 0;
    using _deltas = await outside.listen(turnId, (delta) => {
      if (delta.callId !== callId) return;
      chars += delta.delta.length;
      progress(`${chars} characters of output`);
    });
    const asked = this.#ask(open, { callId, tool: name, arguments: given, envelopeHash: hash });
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return await asked;
    } finally {
      signal.removeEventListener("abort", cancel);
      await this.#look(open);
    }
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Ended by another than this client, and not for its silence. */
  async isStopped(): Promise<boolean> {
    const open = await this.#open?.catch(() => undefined);
    return open?.end !== undefined && !isSilence(open.end.failure);
  }

  /** Calls that run are cancelled, and the turn ends; again is no mistake. */
  [Symbol.asyncDispose](): Promise<void> {
    return (this.#leaving ??= this.#leave());
  }

  async #ask(open: Open, call: { callId: string; tool: string; arguments: JsonObject; envelopeHash: string }) {
    try {
      return await (await this.#outside()).call(open.turnId, call);
    } catch (error) {
      if (open.end === undefined) throw error;
      throw stopped(open.end.failure);
    }
  }

  async #entered(): Promise<Open> {
    if (this.#leaving !== undefined) throw new HeddleError("turn.not-found", "the session has been left");
    const known = this.#open;
    if (known === undefined) return this.#begin(undefined);
    const open = await known;
    if (open.end === undefined) return open;
    if (!isSilence(open.end.failure)) throw stopped(open.end.failure);
    // Two calls at once enter once.
    return this.#open === known ? this.#begin(open.threadId) : this.#entered();
  }

  #begin(threadId: string | undefined): Promise<Open> {
    const opening = this.#enter(threadId);
    this.#open = opening;
    // A refused beginning is tried again with the next use.
    opening.catch(() => {
      if (this.#open === opening) this.#open = undefined;
    });
    return opening;
  }

  async #enter(threadId: string | undefined): Promise<Open> {
    const { context, principal, envelope } = this.#options;
    const { heddle, settings, turns, cwd } = context;
    const workspace = await folderFor({ principal, wanted: undefined, cwd });
    const stored = threadId === undefined ? undefined : await heddle.storedSettings(threadId);
    const resolved = await settings.resolve({ workspace, stored, patch: { envelope }, mayLackKey: true });
    refuseFullAccess(principal, resolved.sandboxMode);
    const entering = {
      thread: threadId ?? { workspace, origin: ORIGIN },
      workspace,
      settings: resolved,
      onDisconnect: "stop",
      ...(isOwner(principal) ? {} : { staysInSandbox: true }),
    } as const;
    const handle = await turns.begin(async () => (await this.#outside()).enter(entering));
    const surface = { envelope: handle.envelope, tools: handle.tools };
    const open: Open = {
      threadId: handle.threadId,
      turnId: handle.turnId,
      surface,
      hash: envelopeHash(handle.envelope),
      end: undefined,
    };
    const ended = (failure: Failure | undefined): void => {
      open.end = { failure };
    };
    handle.done.then(
      ({ body }) => ended(body.failure),
      (error: unknown) => ended({ code: "store.failed", message: reasonOf(error) }),
    );
    return open;
  }

  /** After a hop the client may call other tools. */
  async #look(open: Open): Promise<void> {
    const now = await (await this.#outside()).look(open.turnId);
    if (now === undefined) return;
    const hash = envelopeHash(now.envelope);
    const isSame = hash === open.hash && namesOf(now) === namesOf(open.surface);
    open.surface = { envelope: now.envelope, tools: now.tools };
    open.hash = hash;
    if (!isSame) for (const listener of this.#listeners) listener();
  }

  async #leave(): Promise<void> {
    const open = await this.#open?.catch(() => undefined);
    if (open === undefined || open.end !== undefined) return;
    const { turnId } = open;
    const outside = await this.#outside();
    try {
      const now = await outside.look(turnId);
      for (const callId of now?.calls ?? []) await outside.cancel(turnId, callId);
      await outside.leave(turnId);
    } catch (error) {
      this.#options.log(`a session could not be left: ${reasonOf(error)}`);
      const reason = { code: "turn.interrupted", message: "the client that was its agent has left" } as const;
      await this.#options.context.heddle
        .as(this.#options.by)
        .interrupt(turnId, reason)
        .catch(() => undefined);
    }
  }

  #outside() {
    return this.#options.context.heddle.as(this.#options.by).outside();
  }
}

function namesOf({ tools }: Surface): string {
  return tools.map(({ name }) => name).join("\n");
}

function isSilence(failure: Failure | undefined): boolean {
  return failure?.code === "turn.timeout";
}

function stopped(failure: Failure | undefined): HeddleError {
  const why = failure === undefined ? "" : `: ${failure.message}`;
  return new HeddleError(
    "turn.interrupted",
    `the session was ended${why}; connect the client again to enter another one`,
  );
}
