/**
 * Heddle's own loop: ask the model, run its calls, send it the results, until it stops calling. Every call goes through
 * `dispatch`; an intent is durable before its effect and a result before the next request. The model sees the fold of
 * what was recorded, never a second copy.
 */
import {
  HeddleError,
  type By,
  type ModelOutputPart,
  type ModelToolCall,
  type StoredEvent,
  type TurnSettings,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { modelInfo, resolveProvider, searchProblem, type Provider, warmProvider } from "@heddle/models";
import type { Skill } from "@heddle/tools";
import type { AllChildren } from "../children/child-threads.ts";
import type { AllMessages } from "../messages/port.ts";
import type { HeddleOptions } from "../heddle.ts";
import { createContext, toolCalls, type Context } from "../context/context.ts";
import { admissionOf, toFailure } from "../turns/outcome.ts";
import type { JsonSchema } from "../turns/json-schema.ts";
import { checkLimits } from "../turns/limits.ts";
import { createTurnTools } from "../mcp/mcp.ts";
import { asksSearch } from "../turns/turn-envelope.ts";
import { outputSchemaOf, outputViolations, repairText, schemaViolated } from "../turns/output-schema.ts";
import { evidencePort } from "../evidence/port.ts";
import { EVERY_ABILITY } from "./abilities.ts";
import { OWN_HEALTH } from "./own-health.ts";
import type { Runner, RunnerEvent, TurnIo, TurnOutcome, TurnRequest } from "./runner.ts";
import { ownSkillFolder } from "../context/skills.ts";
import { createAsker, fittingNotes, settingsNow } from "./asker.ts";
import { runCalls } from "./calls.ts";
import { recordPrompt, recordSteering, type RunContext } from "./prompt.ts";
import { declined } from "./response.ts";
import { hookNotes, warning } from "./notes.ts";

/** A connected client that is silent for this long will not answer. */
const CLIENT_TOOL_MS = 300_000;

type EmbeddedOptions = Pick<HeddleOptions, "home" | "codexHome" | "providers" | "env" | "skills" | "clientToolMs">;

export function createEmbeddedRunner(
  options: EmbeddedOptions,
  journal: Journal,
  others: { readonly children?: AllChildren | undefined; readonly messages?: AllMessages | undefined } = {},
): Runner {
  const { children, messages } = others;
  const provider = (settings: TurnSettings): Provider =>
    resolveProvider(options.providers, settings.provider, options.env);
  return {
    name: "embedded",
    capabilities: EVERY_ABILITY,
    probe: () => Promise.resolve(OWN_HEALTH),
    async check(settings, { mustKnowModel = false } = {}) {
      if (mustKnowModel) requireKnown(provider(settings), settings.model);
      checkLimits(provider(settings), settings);
      checkSearch(provider(settings), settings);
      await outputSchemaOf(settings);
    },
    ahead: (settings) => warmProvider(provider(settings)),
    async run(turn, turnIo) {
      const context = createContext(turn.history.map(({ body }) => body));
      const io = folding(turnIo, context);
      const run: RunContext = {
        turn,
        io,
        home: options.home,
        codexHome: options.codexHome,
        userHome: options.env["HOME"],
        skills: options.skills,
        ...turnToolOptions(options, journal, { ...turn, by: "agent:embedded" }),
        children: children?.of(turn, turnIo),
        messages: messages?.of(turn, turnIo),
      };
      const schema = turn.settings.isAnswerUnchecked === true ? undefined : await outputSchemaOf(turn.settings);
      return runLoop(provider(turn.settings), run, { context, schema });
    },
  };
}

/** What the tools of a turn need, whichever runner calls them. */
export function turnToolOptions(
  { home, clientToolMs = CLIENT_TOOL_MS }: Pick<EmbeddedOptions, "home" | "clientToolMs">,
  journal: Journal,
  { threadId, turnId, by }: Pick<TurnRequest, "threadId" | "turnId"> & By,
): Pick<RunContext, "skillFolder" | "clientToolMs" | "goal" | "endGoal" | "evidence" | "giveMessages"> {
  return {
    skillFolder: ownSkillFolder(home),
    clientToolMs,
    async goal() {
      const { readGoal } = await import("../threads/goal.ts");
      return readGoal(journal, threadId);
    },
    async endGoal(status) {
      const { setGoal } = await import("../threads/goal.ts");
      await setGoal(journal, threadId, { status, by });
    },
    evidence: evidencePort(journal, { threadId, turnId, by }),
    async giveMessages(ids) {
      if ((await journal.messages.countWaiting(threadId)) === 0) return [];
      const { giveMessages } = await import("../messages/give.ts");
      return giveMessages(journal, { threadId, turnId, ids });
    },
  };
}

function requireKnown(provider: Provider, model: string): void {
  const { origin, contextTokens } = modelInfo(provider, model);
  if (origin !== undefined || contextTokens !== undefined) return;
  throw new HeddleError(
    "model.unknown",
    `nothing is known of the model ${model} of ${provider.name}; choose one that is listed: heddle models`,
  );
}

function checkSearch(provider: Provider, settings: TurnSettings): void {
  const problem = asksSearch(settings) ? searchProblem(provider, settings.model, settings.searchOptions) : undefined;
  if (problem === undefined) return;
  throw new HeddleError(
    "usage.invalid",
    `${provider.name} ${problem}; leave --search out, set web_search = "disabled", or choose another provider or model (heddle models)`,
  );
}

/** The model sees what is stored, as it is stored, like after a resume. */
function folding(io: TurnIo, context: Context): TurnIo {
  return {
    ...io,
    async record(events, author) {
      const stored = await io.record(events, author);
      for (const event of stored) context.apply(event);
      return stored;
    },
    async follow(itemId, ongoing) {
      const events = await io.follow(itemId, ongoing);
      for (const event of events) context.apply(event);
      return events;
    },
  };
}

async function runLoop(
  provider: Provider,
  run: RunContext,
  { context, schema }: { readonly context: Context; readonly schema: JsonSchema | undefined },
): Promise<TurnOutcome> {
  const { turn, io } = run;
  const { turnId } = turn;
  const tools = createTurnTools(() => modelInfo(provider, settingsNow(turn, io).model), run);
  const asker = createAsker(provider, run, { context, tools });
  let skills: readonly Skill[] = [];
  let hasActed = false;
  let isRepairing = false;
  let noted: string | undefined;

  /** Once for each model that the turn has. */
  async function noteFits(): Promise<void> {
    const settings = settingsNow(turn, io);
    if (settings.model === noted) return;
    noted = settings.model;
    const notes = fittingNotes(provider, { ...turn, settings });
    if (notes.length > 0) await io.record(notes, "system");
  }

  async function handleSteering(): Promise<boolean> {
    const steered = await recordSteering(run, await io.takeSteering(), skills);
    for (const injected of io.takeInjected()) context.apply(injected);
    // A turn that messages started is bounded by them; others wait for the next one.
    const arrived = io.takeArrived() && admissionOf(turn).task !== "message" ? await run.giveMessages() : [];
    if (arrived.length > 0) await io.record([...arrived], "system");
    // New input asks for another answer, not for the old one fixed.
    if (steered > 0) isRepairing = false;
    return steered > 0;
  }

  async function step(): Promise<boolean> {
    await handleSteering();
    await noteFits();
    await tools.refresh();
    const { output, stopReason, explanation } = await askWhole(asker);
    const calls = toolCalls(output);
    hasActed ||= output.some(({ kind }) => kind !== "reasoning");
    if (calls.length > 0 && !isRepairing) {
      await runCalls(calls, { turn, io, toolset: tools.toolset });
      io.signal.throwIfAborted();
      return false;
    }
    if (stopReason === "length") {
      throw new HeddleError("limit.reached", "the model reached its output limit before it finished");
    }
    if (stopReason === "refusal") throw declined("the model declined the request", explanation);
    // After its work a model may end without a message; a turn of nothing at all is not a success.
    if (!hasActed) throw new HeddleError("provider.malformed", "the model's answer is empty");
    if (await handleSteering()) return false;
    if (!isRepairing && (await mustContinue(io, turnId, output))) return false;
    const violations = schema === undefined ? [] : outputViolations(schema, output);
    if (violations.length === 0) return true;
    if (isRepairing) throw schemaViolated(violations);
    isRepairing = true;
    await io.record(askToRepair(turnId, violations), "system");
    return false;
  }

  /** Calls of the last answer that an earlier process did not reach: it waited for an approval. */
  async function finishCalls(): Promise<void> {
    const calls = turn.carried === undefined ? [] : unsettledCalls(turn);
    if (calls.length === 0) return;
    hasActed = true;
    await tools.refresh();
    await runCalls(calls, { turn, io, toolset: tools.toolset });
    io.signal.throwIfAborted();
  }

  async function carryOut(): Promise<void> {
    const { task } = admissionOf(turn);
    if (task !== "compact") skills = await recordPrompt(run);
    else if (!hasCompacted(turn)) await asker.compactOnly();
    const isWithoutPrompt = task === "compact" || task === "shell";
    // Added input makes it a turn like any other.
    if (isWithoutPrompt && !(await handleSteering()) && turn.carried === undefined) return;
    await noteFits();
    await finishCalls();
    // The turn's limits end it: each step is a request.
    while (!(await step()));
  }

  try {
    await carryOut();
    return { kind: "completed", spent: asker.spent };
  } catch (error) {
    return { kind: "failed", failure: toFailure(error), spent: asker.spent };
  }
}

/** In a row; a provider that searches pauses after some searches. */
const MAX_PAUSES = 16;

/** An answer that the provider paused is sent back as it is, with nothing after it, until the provider is done. */
async function askWhole(asker: Pick<ReturnType<typeof createAsker>, "ask">): ReturnType<typeof asker.ask> {
  const output: ModelOutputPart[] = [];
  for (let pauses = 0; pauses <= MAX_PAUSES; pauses += 1) {
    const answer = await asker.ask();
    output.push(...answer.output);
    if (answer.stopReason !== "pause" || toolCalls(answer.output).length > 0) return { ...answer, output };
  }
  throw new HeddleError("limit.reached", `the model paused its answer ${MAX_PAUSES} times without an end`);
}

function unsettledCalls({ history, turnId }: TurnRequest): readonly ModelToolCall[] {
  const isAnswer = ({ body }: StoredEvent): boolean =>
    body.type === "model.responded" && body.turnId === turnId && body.purpose === undefined;
  const index = history.findLastIndex(isAnswer);
  const answer = history[index]?.body;
  if (answer?.type !== "model.responded") return [];
  const settled = new Set(
    history.slice(index).flatMap(({ body }) => (body.type === "tool.settled" ? [body.callId] : [])),
  );
  return toolCalls(answer.output).filter(({ callId }) => !settled.has(callId));
}

/** An earlier run of the same turn did it. */
function hasCompacted({ history, turnId }: TurnRequest): boolean {
  return history.some(({ body }) => body.type === "item.completed" && body.turnId === turnId);
}

/** True when a Stop hook makes the model continue. */
async function mustContinue(io: TurnIo, turnId: string, output: readonly ModelOutputPart[]): Promise<boolean> {
  const reason = await io.policy.reasonToContinue(output.findLast((part) => part.kind === "text")?.text ?? null);
  if (reason === undefined) return false;
  await io.record(hookNotes(turnId, "Stop", [reason]), "system");
  return true;
}

function askToRepair(turnId: string, violations: readonly string[]): RunnerEvent[] {
  const { code, message } = schemaViolated(violations);
  return [
    ...warning(turnId, code, `${message}; the model is asked once to fix it`),
    { type: "context.added", v: 1, turnId, source: "schema", name: "outputSchema", text: repairText(violations) },
  ];
}
