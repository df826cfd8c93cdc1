/**
 * Input under a client's own id is taken once, however often it is sent: as a turn, queued, or as steering. The journal
 * tells, so a resend after a crash or a lost connection is recognized too.
 */
import {
  canonical,
  HeddleError,
  type By,
  type ClientContext,
  type EventBody,
  type EventOf,
  type InputPart,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { appendAt } from "../threads/append-at.ts";

export interface Sent {
  readonly turnId: string;
  readonly as: "turn" | "queued" | "steering";
}

/** undefined: not sent yet. `store.id-conflict`: it was sent with other input. */
export async function findSent(
  journal: Journal,
  threadId: string,
  { clientId, input }: { readonly clientId: string; readonly input: readonly InputPart[] },
): Promise<Sent | undefined> {
  // Queued input may have been changed; the last event of a turn has what stands.
  const last = new Map<string, EventOf<"turn.admitted" | "turn.queued" | "turn.steered">>();
  for (const { body } of await journal.marks.events({ stream: threadId, kinds: ["sent"], name: clientId })) {
    if (body.type === "turn.admitted" || body.type === "turn.queued" || body.type === "turn.steered") {
      last.set(body.turnId, body);
    }
  }
  let found: Sent | undefined;
  for (const body of last.values()) {
    if (canonical(body.input) !== canonical(input)) {
      throw new HeddleError("store.id-conflict", `client id ${clientId} was used before with other input`);
    }
    const { turnId } = body;
    found = {
      turnId,
      as: body.type === "turn.admitted" ? "turn" : body.type === "turn.queued" ? "queued" : "steering",
    };
  }
  return found;
}

export interface Steering extends By {
  readonly clientId?: string | undefined;
  readonly input: readonly InputPart[];
  readonly context?: readonly ClientContext[] | undefined;
}

export type TurnChange = Omit<EventOf<"turn.settings-changed">, "type" | "v" | "turnId">;

/** `turn.not-found` when it has ended. */
export async function changeTurn(journal: Journal, turnId: string, { by, ...change }: TurnChange & By): Promise<void> {
  const event: EventBody = { type: "turn.settings-changed", v: 1, turnId, ...change };
  await appendWhileOpen(journal, turnId, { author: by, events: [event] });
}

/** Adds input to a running turn; the same client id again adds nothing. `turn.not-found` when it has ended. */
export async function steerOnce(journal: Journal, turnId: string, steering: Steering): Promise<void> {
  const { clientId, input, context = [], by } = steering;
  const named = clientId === undefined ? {} : { clientId };
  const added = context.length === 0 ? {} : { context: [...context] };
  const event: EventBody = { type: "turn.steered", v: 1, turnId, input: [...input], ...added, ...named };
  const keyIn = clientId === undefined ? undefined : (stream: string) => `turn.steered:${stream}:${clientId}`;
  await appendWhileOpen(journal, turnId, { author: by, events: [event], keyIn });
}

interface WhileOpen {
  readonly author: By["by"];
  readonly events: readonly EventBody[];
  readonly keyIn?: ((stream: string) => string) | undefined;
}

async function appendWhileOpen(journal: Journal, turnId: string, { author, events, keyIn }: WhileOpen): Promise<void> {
  const stream = (await journal.threads.turn(turnId))?.threadId ?? "";
  await appendAt(journal, stream, async (expectedVersion) => {
    // Read after the version: what ends the turn from here on is a conflict, so that nothing lands after the end.
    if ((await journal.threads.turn(turnId))?.status !== "open") {
      throw new HeddleError("turn.not-found", `turn ${turnId} takes no more input`);
    }
    const key = keyIn === undefined ? {} : { key: keyIn(stream) };
    await journal.append({ stream, author, events, expectedVersion, ...key });
  });
}
