/**
 * Input under a client's own id is taken once, however often it is sent: as a turn, queued, or as steering. The journal
 * tells, so a resend after a crash or a lost connection is recognized too.
 */
import {
  canonical,
  defined,
  HeddleError,
  type By,
  type ClientContext,
  type EventBody,
  type EventOf,
  type InputPart,
  type InputRole,
  type InputSource,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { hasImage, requireAbility } from "../runners/abilities.ts";
import type { Runners } from "../runners/registry.ts";
import { appendAt } from "../threads/append-at.ts";
import { eventAt } from "../threads/history.ts";
import { readLastSettings } from "../threads/past.ts";

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
  /** What it is to the agent; absent: a command. */
  readonly role?: InputRole | undefined;
  /** The thread whose agent sends it. */
  readonly source?: InputSource | undefined;
  readonly context?: readonly ClientContext[] | undefined;
}

export type TurnChange = Omit<EventOf<"turn.settings-changed">, "type" | "v" | "turnId">;

/** `turn.not-found` when it has ended. Another model is refused as for a new turn, and when nothing is known of it. */
export async function changeTurn(
  { journal, runners }: { readonly journal: Journal; readonly runners: Pick<Runners, "of"> },
  turnId: string,
  { by, ...change }: TurnChange & By,
): Promise<void> {
  const settings = await readLastSettings(journal, (await journal.threads.turn(turnId))?.threadId ?? "");
  if (settings !== undefined) {
    const runner = await runners.of(settings);
    requireAbility(runner, "turnChanges", "change how a running turn asks its model; change the next turn");
    if (change.model !== undefined) await runner.check({ ...settings, model: change.model }, { mustKnowModel: true });
  }
  const event: EventBody = { type: "turn.settings-changed", v: 1, turnId, ...change };
  await appendWhileOpen(journal, turnId, { author: by, events: [event] });
}

/** Input that the agent of the turn would never get is refused: `runner.unsupported`. */
export async function steer(
  { journal, runners }: { readonly journal: Journal; readonly runners: Pick<Runners, "of"> },
  turnId: string,
  steering: Steering,
): Promise<void> {
  const row = await journal.threads.turn(turnId);
  const body = row && (await eventAt(journal, row.threadId, row.admittedVersion))?.body;
  if (body?.type === "turn.admitted" && body.task === "attached") {
    const message = "a person has taken this thread over in its agent's own interface; send it when that has ended";
    throw new HeddleError("runner.unsupported", message, { details: { ability: "steering" } });
  }
  if (body?.type === "turn.admitted" && body.settings.runner !== undefined) {
    const runner = await runners.of(body.settings);
    requireAbility(runner, "steering", "take input while a turn runs; send it when the turn is over");
    if (hasImage(steering.input)) requireAbility(runner, "images", "read images; leave them out");
  }
  await steerOnce(journal, turnId, steering);
}

/** Adds input to a running turn; the same client id again adds nothing. `turn.not-found` when it has ended. */
export async function steerOnce(journal: Journal, turnId: string, steering: Steering): Promise<void> {
  const { clientId, input, role, source, context = [], by } = steering;
  const named = defined({ clientId, role, source });
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
