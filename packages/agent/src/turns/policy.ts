/**
 * The rules of a turn that are the same for every runner: hooks, hops, approvals that are remembered, and what a runner may
 * record. The turn makes them from its own record and hands them to the runner; what they come to is recorded here.
 */
import { HeddleError, type Author, type EventBody, type EventType } from "@heddle/protocol";
import { approvalKey } from "@heddle/tools";
import { isAct, rememberedApprovals } from "../approvals/approvals.ts";
import { createHops } from "../approvals/hop.ts";
import type { TurnHooks } from "../hooks/hooks.ts";
import { RUNNER_EVENTS, type BareIo, type TurnIo, type TurnPolicy, type TurnRequest } from "../runners/runner.ts";
import { warning } from "../runners/told.ts";
import { admissionOf } from "./outcome.ts";
import type { Recorder } from "./recorder.ts";

/** How often Stop hooks can send a runner back to work in one turn. */
const MAX_STOPS_REFUSED = 3;
/** A person who ends a run waits for its end. */
const SESSION_END_MS = 1500;

/** What policy records passes no allow-list. */
export interface PolicyIo extends Pick<Recorder, "record"> {
  readonly signal: AbortSignal;
}

export interface OpenPolicy extends TurnPolicy {
  readonly remembered: Set<string>;
  /** With the run: closes sandboxes that were for the turn, and ends the session of an unattended run. */
  end(): Promise<void>;
}

export interface Policies {
  /** For one run of a turn. */
  open(turn: TurnRequest, io: PolicyIo): OpenPolicy;
}

/** The hooks of one run of a turn. */
export type OpenHooks = (turn: TurnRequest, io: PolicyIo) => TurnHooks;

const NO_HOOKS: TurnHooks = { run: async () => ({ isBlocked: false, reason: "", notes: [] }) };

export function createPolicies(
  { isUnattended }: { readonly isUnattended: boolean },
  openHooks: OpenHooks = () => NO_HOOKS,
): Policies {
  /** Threads that have had a turn in this process. */
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
        sessionSource,
        remembered: rememberedApprovals(turn.history, turn.carried),
        reasonToGoOn: createStopQuestion(turn, io, hooks),
        async end() {
          try {
            await hops.end();
          } finally {
            // Nothing outlives an unattended turn, so its session ends with it, however the turn ends.
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
    // Out of time, or a record that cannot be written: the end of the turn meets the same and reports it.
  }
}

function createStopQuestion({ turnId }: TurnRequest, io: PolicyIo, hooks: TurnHooks): TurnPolicy["reasonToGoOn"] {
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

/** The turn's io as a runner gets it: with the policy, and with everything it records checked. */
export function underPolicy(io: BareIo, { turn, runner, policy }: RunnerOf): TurnIo {
  /** Who has said something to this turn; the runner records it in their name. */
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
  /** Its name. */
  readonly runner: string;
  readonly policy: OpenPolicy;
}

/** Types are erased where a runner is another program's adapter, so the event is looked at as it comes. */
function checkEvent(event: EventBody, turnId: string, runner: string): void {
  if (!ALLOWED.has(event.type)) throw refusal(runner, `${event.type}: only ${RUNNER_EVENTS.join(", ")} are allowed`);
  if (!("turnId" in event) || event.turnId !== turnId) throw refusal(runner, `${event.type} for another turn`);
}

function refusal(runner: string, what: string): HeddleError {
  return new HeddleError("policy.denied", `the runner ${runner} may not record ${what}`);
}
