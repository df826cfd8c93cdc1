/**
 * Heddle's own loop: ask the model, run what it calls, tell it the results, until it stops calling. Every call goes through
 * `dispatch`; an intent is durable before its effect and a result before the next request.
 */
import { HeddleError, newItemId, type EventBody, type InputPart, type Item, type TurnSettings } from "@heddle/protocol";
import {
  modelInfo,
  resolveProvider,
  type ModelInput,
  type ModelRequest,
  type Provider,
  type ProviderConfig,
} from "@heddle/models";
import { toolsFor, type Toolset } from "@heddle/tools";
import { rememberedApprovals } from "../approvals.ts";
import { buildContext, toolCalls } from "../context.ts";
import { toFailure } from "../failure.ts";
import { INSTRUCTIONS } from "../instructions.ts";
import { checkLimits } from "../limits.ts";
import type { Runner, RunnerEvent, Spent, TurnIo, TurnOutcome, TurnRequest } from "../runner.ts";
import { addSpent, NOTHING_SPENT } from "../spent.ts";
import { loadSurroundings } from "../surroundings.ts";
import { runCalls } from "./calls.ts";
import { askModel } from "./response.ts";

/** A model that has not finished after so many requests is going in circles. */
const MAX_REQUESTS = 200;

export interface EmbeddedOptions {
  readonly home: string;
  readonly providers: readonly ProviderConfig[];
  readonly env: NodeJS.ProcessEnv;
}

export function createEmbeddedRunner(options: EmbeddedOptions): Runner {
  const provider = (settings: TurnSettings): Provider =>
    resolveProvider(options.providers, settings.provider, options.env);
  return {
    name: "embedded",
    async check(settings) {
      checkLimits(provider(settings), settings);
    },
    async run(turn, io) {
      const history = await greet(turn, io, options.home);
      return createLoop(provider(turn.settings), turn, io, buildContext(history)).run();
    },
  };
}

interface Loop {
  run(): Promise<TurnOutcome>;
}

function createLoop(provider: Provider, turn: TurnRequest, io: TurnIo, input: ModelInput[]): Loop {
  const { turnId, settings } = turn;
  const toolset = toolsFor(modelInfo(provider, settings.model).family, turn.place.envelope);
  const remembered = rememberedApprovals(turn.history);
  let spent: Spent = NOTHING_SPENT;
  let hasActed = false;

  async function tellSteering(): Promise<number> {
    const steering = await io.takeSteering();
    for (const { input: parts, clientId } of steering) {
      await io.record(userMessage(turnId, parts, clientId), "user");
      input.push({ kind: "user", parts });
    }
    return steering.length;
  }

  /** One request and its calls; an outcome when the turn is over. */
  async function step(): Promise<TurnOutcome | undefined> {
    await tellSteering();
    const answer = await askModel(provider, modelRequest(turn, toolset, input), turnId, io);
    spent = addSpent(spent, answer);
    if (answer.output.length > 0) input.push({ kind: "assistant", parts: answer.output });
    const calls = toolCalls(answer.output);
    hasActed ||= answer.output.some(({ kind }) => kind !== "reasoning");
    if (calls.length > 0) {
      input.push(...(await runCalls(calls, { turn, io, toolset, remembered })));
      io.signal.throwIfAborted();
      return undefined;
    }
    if (answer.stopReason === "length") {
      throw new HeddleError("limit.reached", "the model reached its output limit before it finished");
    }
    if (answer.stopReason === "refusal") throw new HeddleError("provider.refused", "the model declined the request");
    // After its work a model may end without a word; a turn of nothing but silence is no success.
    if (!hasActed) throw new HeddleError("provider.malformed", "the model answered with nothing at all");
    return (await tellSteering()) > 0 ? undefined : { kind: "completed", spent };
  }

  return {
    async run() {
      try {
        for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
          const outcome = await step();
          if (outcome !== undefined) return outcome;
        }
        throw new HeddleError("limit.reached", `the model made ${MAX_REQUESTS} requests without finishing`);
      } catch (error) {
        return { kind: "failed", failure: toFailure(error), spent };
      }
    },
  };
}

function modelRequest(turn: TurnRequest, toolset: Toolset, input: readonly ModelInput[]): ModelRequest {
  const { model, effort, outputSchema } = turn.settings;
  return {
    model,
    instructions: INSTRUCTIONS,
    input,
    tools: toolset.offered,
    cacheKey: turn.threadId,
    ...(effort === undefined ? {} : { effort }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
  };
}

/** Records what a turn begins with, unless an earlier run of the same turn has: its surroundings, when they are news, and the user's message. */
async function greet(turn: TurnRequest, io: TurnIo, home: string): Promise<EventBody[]> {
  const { turnId, workspace } = turn;
  const history = turn.history.map(({ body }) => body);
  const admitted = history.findLast((body) => body.type === "turn.admitted" && body.turnId === turnId);
  if (admitted?.type !== "turn.admitted") throw new HeddleError("internal", `turn ${turnId} was never admitted`);
  if (history.some((body) => body.type === "item.completed" && body.turnId === turnId)) return history;

  const loaded = await loadSurroundings({ workspace, envelope: turn.place.envelope, home, signal: io.signal });
  const before = history.findLast((body) => body.type === "context.loaded");
  const isNews = before?.type !== "context.loaded" || before.text !== loaded.text;
  const message = userMessage(turnId, admitted.input, admitted.clientId);
  const news: RunnerEvent[] = isNews ? [{ type: "context.loaded", v: 1, turnId, ...loaded }] : [];
  await io.record([...news, ...message], "user");
  return [...history, ...news, ...message];
}

function userMessage(turnId: string, content: readonly InputPart[], clientId: string | undefined): RunnerEvent[] {
  const item: Item = {
    type: "userMessage",
    id: newItemId(),
    content: [...content],
    ...(clientId === undefined ? {} : { clientId }),
  };
  return [
    { type: "item.started", v: 1, turnId, item },
    { type: "item.completed", v: 1, turnId, item },
  ];
}
