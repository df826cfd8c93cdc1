/**
 * Requests to the model: compacts a conversation that is too large, leaves out stored parts that the provider refuses,
 * and reports settings that were fitted to the model. Each is recorded before the request that follows, and happens
 * once per turn for the same reason.
 */
import { defined, isHeddleError, type EventOf, type TurnSettings } from "@heddle/protocol";
import { answeringNotes, fitEffort, modelInfo, type ModelRequest, type Provider } from "@heddle/models";
import { WEB_SEARCH, type Toolset } from "@heddle/tools";
import type { Context } from "../context/context.ts";
import { textTokens, windowOf } from "../context/context-size.ts";
import { admissionOf, toFailure, addSpent, NOTHING_SPENT } from "../turns/outcome.ts";
import { instructionsFor } from "../context/instructions.ts";
import { asksSearch } from "../turns/turn-envelope.ts";
import { hasParts } from "../context/left-out-context.ts";
import type { TurnTools } from "../mcp/mcp.ts";
import type { RunnerEvent, Spent, TurnRequest } from "./runner.ts";
import type { CompactionOutcome, Trigger } from "./compaction.ts";
import type { RunContext } from "./prompt.ts";
import { askModel } from "./response.ts";
import { warning } from "./notes.ts";

export function createAsker(
  provider: Provider,
  { turn, io }: RunContext,
  { context, tools }: { readonly context: Context; readonly tools: TurnTools },
) {
  const { turnId } = turn;
  // As they are stored, without secrets, so that a resumed turn says the same.
  const { settings } = admissionOf(turn);
  let weighed: { readonly toolset: Toolset; readonly tokens: number } | undefined;
  let spent: Spent = NOTHING_SPENT;
  let mayCompact = true;
  const leftOut = new Set<LeftOut>();

  function overheadTokens(): number {
    const { toolset } = tools;
    if (weighed?.toolset !== toolset) {
      weighed = {
        toolset,
        tokens:
          textTokens(Object.values(instructionsFor(settings)).join("")) + textTokens(JSON.stringify(toolset.offered)),
      };
    }
    return weighed.tokens;
  }

  /** The turn as it is now, with the window of the model that it has now. */
  function current() {
    const now = { ...turn, settings: settingsNow(turn, io) };
    return { turn: now, window: windowOf(now.settings, modelInfo(provider, now.settings.model).windowTokens) };
  }

  const isTooLarge = (): boolean => context.tokens(overheadTokens()) >= current().window.compactAtTokens;

  async function compact(trigger: Trigger): Promise<CompactionOutcome> {
    const { turn: now, window } = current();
    const given = { provider, turn: now, io, context, windowTokens: window.tokens, overheadTokens: overheadTokens() };
    const { runCompaction } = await import("./compaction.ts");
    const outcome = await runCompaction(trigger, given);
    spent = addSpent(spent, outcome.spent);
    return outcome;
  }

  /** false: there is nothing of the kind, or it was left out already. */
  async function leaveOut(error: unknown): Promise<boolean> {
    const kinds = refusedKinds(error).filter((kind) => !leftOut.has(kind));
    const parts = kinds.find((kind) => hasParts(context.entries, { parts: kind, turnId }));
    if (parts === undefined) return false;
    leftOut.add(parts);
    await io.record(leftOutEvents(current().turn, parts, error), "system");
    return true;
  }

  async function askOnce(): ReturnType<typeof askModel> {
    const request = modelRequest(current().turn, tools.toolset, context);
    const search = hasSearch(turn)
      ? defined({ webSearch: settings.webSearch, searchOptions: settings.searchOptions })
      : {};
    const answer = await askModel({ provider, request: { ...request, ...search }, turnId, io }, turn.settings);
    spent = addSpent(spent, answer);
    return answer;
  }

  return {
    /** Of all requests, those for summaries included. */
    get spent(): Spent {
      return spent;
    },
    /**
     * One request; repeated once with a smaller context when it is too large for the model, and without stored parts that
     * the provider refuses.
     */
    async ask(): ReturnType<typeof askModel> {
      if (mayCompact && isTooLarge()) {
        await compact("auto");
        // What could not be made smaller is not tried again.
        mayCompact = !isTooLarge();
      }
      for (let mayShrink = true; ;) {
        try {
          return await askOnce();
        } catch (error) {
          if (await leaveOut(error)) continue;
          const isTooLong = isHeddleError(error) && error.code === "provider.context-exceeded";
          if (!isTooLong || !mayShrink) throw error;
          mayShrink = false;
          if ((await compact("overflow")).kind !== "compacted") throw error;
        }
      }
    },
    async compactOnly(): Promise<void> {
      const outcome = await compact("manual");
      if (outcome.kind === "failed") throw outcome.error;
    },
  };
}

/** As clients have changed them since the turn began, before a restart too. */
export function settingsNow(turn: TurnRequest, io: Pick<RunContext["io"], "changes">): TurnSettings {
  const { history, turnId } = turn;
  const earlier = history.flatMap(({ body }) =>
    body.type === "turn.settings-changed" && body.turnId === turnId ? [body] : [],
  );
  return [...earlier, ...io.changes()].reduce((now, { model, effort, summary, serviceTier }) => {
    const { serviceTier: before, ...others } = now;
    const tier = serviceTier === undefined ? before : (serviceTier ?? undefined);
    return { ...others, ...defined({ model, effort, summary, serviceTier: tier }) };
  }, admissionOf(turn).settings);
}

type LeftOut = EventOf<"context.left-out">["parts"];

/** What to leave out for a refusal, the least first; every provider takes plain text. */
const LADDER: Readonly<Record<string, readonly LeftOut[]>> = {
  sealed: ["sealed", "structure"],
  images: ["images", "structure"],
  conversation: ["sealed", "structure"],
};

function refusedKinds(error: unknown): readonly LeftOut[] {
  if (!isHeddleError(error) || error.code !== "provider.rejected") return [];
  return LADDER[String(error.details["refused"])] ?? [];
}

const NAMES: Readonly<Record<LeftOut, string>> = {
  sealed: "reasoning that only the provider can read",
  images: "images",
  structure: "the form of earlier tool calls and results; their text stays",
};

function leftOutEvents({ turnId, settings }: TurnRequest, parts: LeftOut, error: unknown): RunnerEvent[] {
  const { provider, model } = settings;
  const failure = toFailure(error);
  const message = `the provider refused an earlier part of this conversation; it continues without ${NAMES[parts]} (${failure.message})`;
  return [
    { type: "context.left-out", v: 1, turnId, parts, provider, model, failure },
    ...warning(turnId, "context.left-out", message),
  ];
}

const NO_SEARCH =
  "the client asked for web search, and this thread has no network access: the model cannot search. " +
  "Give the thread network access, or allow it in any thread: heddle config set web_search live";

/** Settings that the model does not take: each is reported once per thread, images each time. */
export function fittingNotes(provider: Provider, turn: TurnRequest): RunnerEvent[] {
  const { turnId, settings, history } = turn;
  const info = modelInfo(provider, settings.model);
  const { note } = fitEffort(info, settings.effort);
  const shown = new Set(
    history.map(({ body }) =>
      body.type === "item.completed" && body.item.type === "notice" ? body.item.message : undefined,
    ),
  );
  const hasImages = history.some(
    ({ body }) =>
      body.type === "turn.admitted" && body.turnId === turnId && body.input.some(({ type }) => type === "image"),
  );
  const unseen = `${info.model} does not accept images; the model gets a note instead`;
  return [
    ...(note === undefined || shown.has(note) ? [] : warning(turnId, "model.effort", note)),
    ...answeringNotes(settings, provider, info)
      .filter((line) => !shown.has(line))
      .flatMap((line) => warning(turnId, "model.setting", line)),
    ...(asksSearch(settings) && !hasSearch(turn) && !shown.has(NO_SEARCH)
      ? warning(turnId, "search.unavailable", NO_SEARCH)
      : []),
    ...(hasImages && info.readsImages === false ? warning(turnId, "model.images", unseen) : []),
  ];
}

/** Who uses Heddle, where its door knows. */
export function callerOf({ origin }: Pick<TurnRequest, "origin">): Pick<ModelRequest, "caller"> {
  const [, caller] = /^[^:]*:(.+)$/.exec(origin) ?? [];
  return caller === undefined ? {} : { caller };
}

function hasSearch({ sandboxContext }: TurnRequest): boolean {
  return sandboxContext.envelope.tools.includes(WEB_SEARCH);
}

export function modelRequest(
  turn: Pick<TurnRequest, "threadId" | "settings" | "origin">,
  toolset: Pick<Toolset, "offered">,
  context: Pick<Context, "input">,
): ModelRequest {
  const { model, effort, verbosity, summary, serviceTier, outputSchema } = turn.settings;
  return {
    model,
    ...instructionsFor(turn.settings),
    input: context.input,
    tools: toolset.offered,
    cacheKey: turn.threadId,
    ...callerOf(turn),
    ...defined({ effort, verbosity, summary, serviceTier, outputSchema }),
  };
}
