/**
 * One request to the model of a thread outside its conversation, with the context of its next turn. Tools are offered
 * as in a turn, to keep the provider's cache valid, but never called; those of MCP servers are left out, because none
 * is started for this. Only usage is stored.
 */
import {
  modelInfo,
  resolveProvider,
  streamModel,
  type ModelEvent,
  type ModelRequest,
  type Provider,
} from "@heddle/models";
import {
  HeddleError,
  NO_USAGE,
  toHeddleError,
  uuidv7,
  type EventOf,
  type TurnSettings,
  type Usage,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { toolsFor } from "@heddle/tools";
import { userText } from "../context/context-entry.ts";
import { buildContext, toolCalls } from "../context/context.ts";
import type { HeddleOptions } from "../heddle.ts";
import { lastTurnOf, readPlan } from "../threads/past.ts";
import { readResumed } from "../threads/resumed.ts";
import { toolsBesideMcp } from "../mcp/mcp.ts";
import { modelRequest } from "../runners/asker.ts";
import { shortLimit } from "./short-run.ts";
import { evidencePort } from "../evidence/port.ts";
import { ownSkillFolder } from "../context/skills.ts";
import { turnEnvelope } from "../turns/turn-envelope.ts";
import { requireSound } from "../threads/threads.ts";

export interface SampleQuestion {
  readonly threadId: string;
  /** The last turn as the caller knows it; refused when there is a later one. */
  readonly expectedTurnId: string;
  readonly prompt: string;
  readonly settings: TurnSettings;
}

export interface Sample {
  readonly responseId: string;
  readonly text: string | undefined;
  readonly usage: Usage | undefined;
}

/** The model reads a whole context, but nobody waits for a turn. */
const TIMEOUT_MS = 120_000;

export async function sample(
  options: HeddleOptions & { readonly journal: Journal },
  question: SampleQuestion,
  signal: AbortSignal,
): Promise<Sample> {
  const { journal, providers, env } = options;
  const { threadId, settings } = question;
  const { workspace, origin } = await requireSound(journal, threadId);
  await requireLatest(journal, question);
  const history = await readResumed(journal, threadId);
  const provider = resolveProvider(providers, settings.provider, env);
  const evidence = evidencePort(journal, { threadId, turnId: question.expectedTurnId, by: "system" });
  const own = { ...NEVER, skillFolder: ownSkillFolder(options.home), evidence };
  const { family, readsImages } = modelInfo(provider, settings.model);
  const more = { ...toolsBesideMcp({ settings, history }, own), readsImages };
  const { envelope } = await turnEnvelope(options, { settings, workspace });
  const toolset = toolsFor(family, envelope, more);
  const input = [...buildContext(history.map(({ body }) => body)), userText(question.prompt)];
  const request = modelRequest({ threadId, settings, origin }, toolset, { input });

  const startedAt = performance.now();
  const { answer, error, ...took } = await ask(provider, request, signal).then(answered, failed);
  const durationMs = Math.round(performance.now() - startedAt);
  const asked = { purpose: "sample", provider: settings.provider, model: settings.model, durationMs } as const;
  await journal.append({
    stream: threadId,
    author: "system",
    events: [{ type: "background.ran", v: 1, ...asked, ...took }],
  });
  if (answer === undefined) throw error;
  return answer;
}

/** Inherited turns count. */
async function requireLatest(journal: Journal, { threadId, expectedTurnId }: SampleQuestion): Promise<void> {
  const last = await lastTurnOf(journal, await readPlan(journal, threadId));
  const turnId = last?.id;
  if (last?.status === "open") {
    throw new HeddleError("turn.active", "sample source must be idle", { details: { turnId: last.id } });
  }
  if (turnId === expectedTurnId) return;
  const details = turnId === undefined ? {} : { details: { turnId } };
  throw new HeddleError("turn.not-found", "sample source turn must be the latest finished turn", details);
}

const NEVER = {
  clientToolMs: 0,
  clientAnswer: (): Promise<never> => Promise.reject(new HeddleError("internal", "a sample cannot run tools")),
  endGoal: (): Promise<void> => Promise.resolve(),
};

type Completed = Extract<ModelEvent, { type: "completed" }>;

async function ask(provider: Provider, request: ModelRequest, signal: AbortSignal): Promise<Completed> {
  using limit = shortLimit(signal, TIMEOUT_MS);
  for await (const event of streamModel(provider, request, { signal: limit.signal }))
    if (event.type === "completed") return event;
  throw new HeddleError("provider.cut", "the answer has no end");
}

type Ran = Pick<EventOf<"background.ran">, "outcome" | "failureCode" | "usage" | "costUsd"> & {
  readonly answer?: Sample;
  readonly error?: unknown;
};

function answered({ output, usage, costUsd }: Completed): Ran {
  const answerText = output.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n");
  const isText = toolCalls(output).length === 0 && answerText.trim() !== "";
  const isMeasured = usage.inputTokens > 0;
  const answer = {
    responseId: `resp_${uuidv7()}`,
    text: isText ? answerText : undefined,
    usage: isMeasured ? usage : undefined,
  };
  return { outcome: "ok", usage, ...(costUsd === undefined ? {} : { costUsd }), answer };
}

function failed(error: unknown): Ran {
  return { outcome: "failed", failureCode: toHeddleError(error).code, usage: NO_USAGE, error };
}
