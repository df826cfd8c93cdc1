/**
 * A hop of an idle thread by name: by a user at a door, or by a task between its turns. While a turn runs it is refused with
 * `hop.busy`, because the agent would continue with the description of the envelope before. A hop that loses
 * against another one, or against a turn that begins, is judged again.
 */
import type { Journal } from "@heddle/journal";
import { HeddleError, type By, type HopChannel, type TurnSettings } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { envelopeHash } from "@heddle/tools";
import type { HopAsked } from "@heddle/tools/hops";
import type { TurnSandbox } from "../runners/runner.ts";
import type { EnterThread } from "../sandboxes/thread-sandboxes.ts";
import { recordViolations } from "../sandboxes/after-turns.ts";
import { appendAt } from "../threads/append-at.ts";
import type { Serial } from "../turns/serial.ts";
import { requireSound } from "../threads/threads.ts";
import { findEvidence } from "./hop-guards.ts";
import {
  factsOf,
  hopEvents,
  judgeRequest,
  placeOf,
  refusedEvents,
  type AllowedHop,
  type RefusedHop,
  type ThreadPlace,
} from "./judge-request.ts";

export interface HopThread extends HopAsked {
  readonly threadId: string;
  /** Absent: a user. */
  readonly channel?: Exclude<HopChannel, "model">;
  /** The caller may not leave the sandbox, whatever the edges say. */
  readonly staysInSandbox?: boolean;
}

export interface ThreadHop {
  readonly from: string;
  readonly to: string;
  readonly envelopeHash: string;
  /** How many envelopes can be gone back through. */
  readonly depth: number;
}

export interface HopEngine {
  readonly journal: Journal;
  readonly starts: Serial;
  enter(thread: EnterThread): Promise<TurnSandbox>;
  settings(threadId: string): Promise<TurnSettings | undefined>;
  /** The sandbox of an idle thread is closed after a while. */
  wait(threadId: string): void;
}

export function hopThread(engine: HopEngine, hop: HopThread & By): Promise<ThreadHop> {
  const { threadId } = hop;
  return engine.starts.run(threadId, () => hopIdle(engine, hop).finally(() => engine.wait(threadId)));
}

async function hopIdle(engine: HopEngine, { by, ...hop }: HopThread & By): Promise<ThreadHop> {
  const { threadId, channel = "user" } = hop;
  const { journal } = engine;
  const { workspace } = await requireSound(journal, threadId);
  const settings = await engine.settings(threadId);
  if (settings === undefined) {
    throw new HeddleError("usage.invalid", `thread ${threadId} has had no turn yet, so it is in no envelope`);
  }

  async function refuse(refusal: RefusedHop, { envelope }: ThreadPlace, expectedVersion?: number): Promise<never> {
    const events = refusedEvents(refusal, envelope);
    const on = expectedVersion === undefined ? {} : { expectedVersion };
    await journal.append({ stream: threadId, author: by, events, ...on });
    throw new HeddleError(refusal.failure.code, refusal.failure.message);
  }

  return appendAt(journal, threadId, async (expectedVersion) => {
    const place = await placeOf(journal, threadId);
    if ((await journal.threads.lastTurn(threadId))?.status === "open") {
      const message = `a turn runs in thread ${threadId}; wait for its end, or interrupt it`;
      return refuse({ kind: "refused", facts: factsOf(hop, channel), failure: { code: "hop.busy", message } }, place);
    }
    const sandboxContext = await engine.enter({ threadId, workspace, settings });
    const judged = await judgeIdle(hop, { journal, threadId, channel, place, workspace, sandboxContext });
    if (judged.kind === "refused") return refuse(judged, place, expectedVersion);
    if (hop.staysInSandbox === true && judged.to.sandbox === "off") {
      const message = `${judged.to.id} has no sandbox; only the owner can enter it`;
      return refuse({ ...judged, kind: "refused", failure: { code: "door.forbidden", message } }, place);
    }
    if (channel === "task" && judged.edge?.approval === "ask") {
      const message = `the hop from ${place.envelope.id} to ${judged.to.id} asks a user`;
      return refuse({ ...judged, kind: "refused", failure: { code: "hop.approval-denied", message } }, place);
    }
    const changed = await sandboxContext.change(judged.to);
    await recordViolations(journal, threadId, changed.violations);
    failpoint("hop.before-enter");
    const sandboxLevel = changed.sandboxContext.sandbox.level;
    const at = expectedVersion + changed.violations.length;
    const signal = new AbortController().signal;
    const events = await hopEvents(judged, { journal, workspace, signal, place, sandboxLevel });
    await journal.append({ stream: threadId, author: by, events, expectedVersion: at });
    failpoint("hop.after-enter");
    const depth = place.stack.length + (judged.edge === undefined ? -1 : 1);
    return { from: place.envelope.id, to: judged.to.id, envelopeHash: envelopeHash(judged.to), depth };
  });
}

interface Idle {
  readonly journal: Pick<Journal, "evidence">;
  readonly threadId: string;
  readonly channel: HopChannel;
  readonly place: ThreadPlace;
  readonly workspace: string;
  readonly sandboxContext: TurnSandbox;
}

function judgeIdle(request: HopAsked, { journal, sandboxContext, ...idle }: Idle): Promise<AllowedHop | RefusedHop> {
  const { sandbox, state } = sandboxContext;
  return judgeRequest(request, {
    ...idle,
    envelopes: sandboxContext,
    findEvidence: findEvidence(journal),
    // Each guard has a time limit of its own.
    signal: new AbortController().signal,
    sandbox: async () => ({ sandbox, environment: state.environment }),
  });
}
