/**
 * What a turn may spend, measured by what it records: every model request before it is sent, every answer when it is
 * stored. Reaching a limit aborts the turn with `limit.reached` and the amounts.
 */
import { costOf, modelInfo, type Provider } from "@heddle/models";
import { HeddleError, NO_USAGE, type TurnLimits, type TurnSettings } from "@heddle/protocol";
import type { EnvelopeMeter } from "@heddle/tools";
import type { BareIo, RunnerEvent, Spent } from "../runners/runner.ts";
import { addSpent, NOTHING_SPENT } from "./outcome.ts";

/** An unknown cost cannot be limited; that is better reported now than after the first bill. */
export function checkLimits(provider: Provider, { model, limits }: TurnSettings): void {
  if (limits?.maxCostUsd === undefined || costOf(NO_USAGE, modelInfo(provider, model)) !== undefined) return;
  throw new HeddleError(
    "usage.invalid",
    `the price of ${model} at ${provider.name} is not known, so its cost cannot be limited; limit its tokens, or add its price in US dollars per million tokens to config.toml: ` +
      `model_providers.${provider.id}.prices."${model}" = { input = …, output = … }`,
  );
}

export interface Meter {
  /** Of the turn that started the thread. */
  readonly outer?: Meter | undefined;
  /** Once the turn has begun: that of the envelope in force, in which the turns of child threads count too. */
  ofEnvelope?: () => EnvelopeMeter;
  /** Before the events are recorded; an error means that they must not be, and the request not sent. */
  before(events: readonly RunnerEvent[], isChild?: boolean): HeddleError | undefined;
  after(events: readonly RunnerEvent[]): HeddleError | undefined;
}

/** `outer`: of the turn that started the thread of this one; what is used here is used there too. */
export function createMeter(limits: TurnLimits, outer?: Meter): Meter {
  const requests = new Set<string>();
  const byChildren = new Set<string>();
  let spent: Spent = NOTHING_SPENT;

  return {
    outer,
    before(events, isChild = false) {
      const known = isChild ? byChildren : requests;
      for (const event of events) {
        // Retries of one request have the same id; only the first is new.
        if (event.type !== "model.requested" || known.has(event.requestId)) continue;
        const made = { own: requests.size, all: requests.size + byChildren.size };
        const reached = requestsLeft(limits, made) ?? budgetLeft(limits, spent, "at");
        if (reached !== undefined) return reached;
        const above = outer?.before([event], true);
        if (above !== undefined) return above;
        known.add(event.requestId);
      }
      return undefined;
    },
    after(events) {
      for (const event of events) {
        if (event.type !== "model.responded") continue;
        const { usage, costUsd } = event;
        spent = addSpent(spent, costUsd === undefined ? { usage } : { usage, costUsd });
      }
      return budgetLeft(limits, spent, "over") ?? outer?.after(events);
    },
  };
}

/** The meter sees everything that a runner records. */
export function metered(io: BareIo, meter: Meter, end: (reached: HeddleError) => void): BareIo {
  return {
    ...io,
    async record(events, author) {
      const refused = meter.before(events);
      if (refused !== undefined) {
        // Aborted as well, because the caller may survive a failed request.
        end(refused);
        throw refused;
      }
      const stored = await io.record(events, author);
      const reached = meter.after(events);
      if (reached !== undefined) end(reached);
      return stored;
    },
  };
}

/** A model that has not finished after this many requests is going in circles. */
const MAX_REQUESTS = 200;

function requestsLeft(
  { maxRequests }: TurnLimits,
  { own, all }: { readonly own: number; readonly all: number },
): HeddleError | undefined {
  if (maxRequests === undefined ? own < MAX_REQUESTS : all < maxRequests) return undefined;
  // Not a limit that was set, so none is named in the details.
  if (maxRequests === undefined)
    return new HeddleError("limit.reached", `the model made ${MAX_REQUESTS} requests without finishing`);
  return new HeddleError("limit.reached", `the limit of ${maxRequests} model requests is reached`, {
    details: { limit: "turns", allowed: maxRequests, used: all },
  });
}

/** `at`: nothing is left for another request. `over`: an answer cost more than was left. */
function budgetLeft(limits: TurnLimits, spent: Spent, line: "at" | "over"): HeddleError | undefined {
  const { maxTokens, maxCostUsd } = limits;
  const tokens = spent.usage.inputTokens + spent.usage.outputTokens;
  const isBeyond = (used: number, allowed: number): boolean => (line === "at" ? used >= allowed : used > allowed);
  if (maxTokens !== undefined && isBeyond(tokens, maxTokens)) {
    return new HeddleError("limit.reached", `the limit of ${maxTokens} tokens is reached: ${tokens} were used`, {
      details: { limit: "tokens", allowed: maxTokens, used: tokens },
    });
  }
  if (maxCostUsd === undefined) return undefined;
  const { costUsd } = spent;
  if (costUsd === undefined) {
    // A limit that cannot be measured cannot be kept.
    return new HeddleError(
      "limit.reached",
      `the cost of an answer is not known, so the limit of $${maxCostUsd} cannot be enforced`,
      {
        details: { limit: "cost", allowed: maxCostUsd, isKnown: false },
      },
    );
  }
  if (!isBeyond(costUsd, maxCostUsd)) return undefined;
  return new HeddleError("limit.reached", `the limit of $${maxCostUsd} is reached: $${costUsd.toFixed(6)} was spent`, {
    details: { limit: "cost", allowed: maxCostUsd, used: costUsd },
  });
}
