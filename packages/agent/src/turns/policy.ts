/**
 * The rules of a turn that are the same for every runner: hooks, hops, remembered approvals, and what a runner may
 * record.
 */
import type { Journal } from "@heddle/journal";
import { HeddleError, type Author, type EventBody, type EventType } from "@heddle/protocol";
import { approvalKey, createEnvelopeMeters, type EnvelopeMeter, type SinceEntered } from "@heddle/tools";
import { isAct, rememberedApprovals } from "../approvals/approvals.ts";
import { createHops } from "../approvals/hop.ts";
import type { TurnHooks } from "../hooks/hooks.ts";
import { RUNNER_EVENTS, type BareIo, type TurnIo, type TurnPolicy, type TurnRequest } from "../runners/runner.ts";
import { warning } from "../runners/notes.ts";
import { admissionOf } from "./outcome.ts";
import type { Recorder } from "./recorder.ts";

/** How often Stop hooks can make a runner continue in one turn. */
const MAX_STOPS_REFUSED = 3;
/** A user who ends a run waits for its end. */
const SESSION_END_MS = 1500;

/** Events of the policy itself are not limited by the allow-list. */
export interface PolicyIo extends Pick<Recorder, "record" | "settleFollowed"> {
  readonly signal: AbortSignal;
  /** In the envelope that the turn begins in. */
  readonly since: SinceEntered;
  readonly journal: Pick<Journal, "threads" | "read" | "evidence" | "keepManifest">;
  /** Of a child thread: the meter of its parent's turn. */
  readonly outer?: () => EnvelopeMeter | undefined;
}

export interface OpenPolicy extends TurnPolicy {
  readonly remembered: Set<string>;
  /** Closes sandboxes that were for the turn, and ends the session of an unattended run. */
  end(): Promise<void>;
}

export interface Policies {
  open(turn: TurnRequest, io: PolicyIo): OpenPolicy;
}

export type OpenHooks = (turn: TurnRequest, io: PolicyIo) => TurnHooks;

const NO_HOOKS: TurnHooks = { run: async () => ({ isBlocked: false, reason: "", notes: [] }) };

export function createPolicies(
  { isUnattended }: { readonly isUnattended: boolean },
  openHooks: OpenHooks = () => NO_HOOKS,
): Policies {
  const sessions = new Set<string>();
  return {
    open(turn, io) {
      const { threadId } = turn;
      const hooks = openHooks(turn, io);
      const hops = createHops(turn, io);
      const sessionSource = sessions.has(threadId) ? undefined : sourceOf(turn);
      sessions.add(threadId);
      return {
        hooks,
        hops,
        meters: createEnvelopeMeters(io.since, { outer: io.outer }),
        sessionSource,
        remembered: rememberedApprovals(turn.history, turn.carried),
        reasonToContinue: createStopCheck(turn, io, hooks),
        async end() {
          try {
            await hops.end();
          } finally {
            // Nothing outlives an unattended turn, so its session ends with it.
            if (isUnattended) {
              sessions.delete(threadId);
              await endSession(hooks);
            }
          }
        },
      };
    },
  };
}

function sourceOf({ history, turnId }: TurnRequest): "startup" | "resume" {
  const isOther = (body: EventBody): boolean => body.type === "turn.admitted" && body.turnId !== turnId;
  return history.some(({ body }) => isOther(body)) ? "resume" : "startup";
}

async function endSession(hooks: TurnHooks): Promise<void> {
  const limit = { signal: AbortSignal.timeout(2 * SESSION_END_MS), timeoutMs: SESSION_END_MS };
  try {
    await hooks.run("SessionEnd", { subject: "other", payload: { reason: "other" }, limit });
  } catch {
    // Out of time, or a failed record: the end of the turn meets and reports the same.
  }
}

function createStopCheck({ turnId }: TurnRequest, io: PolicyIo, hooks: TurnHooks): TurnPolicy["reasonToContinue"] {
  let refused = 0;
  return async (lastMessage) => {
    const payload = { stop_hook_active: refused > 0, last_assistant_message: lastMessage };
    const verdict = await hooks.run("Stop", { payload });
    if (!verdict.isBlocked) return undefined;
    if (refused >= MAX_STOPS_REFUSED) {
      const message = `a Stop hook asked to continue more than ${MAX_STOPS_REFUSED} times; the turn ends anyway`;
      await io.record(warning(turnId, "limit.reached", message), "system");
      return undefined;
    }
    refused += 1;
    return verdict.reason;
  };
}

const ALLOWED: ReadonlySet<EventType> = new Set(RUNNER_EVENTS);

/** The turn's io for a runner: with the policy, and with everything it records checked. */
export function underPolicy(io: BareIo, { turn, runner, policy }: RunnerOf): TurnIo {
  /** Authors of input to this turn; the runner may record in their name. */
  const speakers = new Set<Author>(["system", `agent:${runner}`, admissionOf(turn).by]);
  const { remembered } = policy;
  return {
    ...io,
    policy,
    async record(events, author) {
      for (const event of events) checkEvent(event, turn.turnId, runner);
      if (author !== undefined && !speakers.has(author)) {
        throw refusal(runner, `in the name of ${author}, who sent nothing to this turn`);
      }
      return await io.record(events, author);
    },
    async takeSteering() {
      const steering = await io.takeSteering();
      for (const { by } of steering) speakers.add(by);
      return steering;
    },
    async ask(question, signal) {
      const key = isAct(question) ? approvalKey(question) : undefined;
      if (key !== undefined && remembered.has(key)) return { decision: "acceptForThread", by: "policy:remembered" };
      const answer = await io.ask(question, signal);
      if (answer.decision === "acceptForThread" && key !== undefined) remembered.add(key);
      return answer;
    },
  };
}

interface RunnerOf {
  readonly turn: TurnRequest;
  readonly runner: string;
  readonly policy: OpenPolicy;
}

/** Types are erased where a runner is another program's adapter, so events are checked at run time. */
function checkEvent(event: EventBody, turnId: string, runner: string): void {
  if (!ALLOWED.has(event.type)) throw refusal(runner, `${event.type}: only ${RUNNER_EVENTS.join(", ")} are allowed`);
  if (!("turnId" in event) || event.turnId !== turnId) throw refusal(runner, `${event.type} for another turn`);
}

function refusal(runner: string, what: string): HeddleError {
  return new HeddleError("policy.denied", `the runner ${runner} may not record ${what}`);
}
