/**
 * Any agent that speaks the Agent Client Protocol, version 1. An end it calls a success is only `likely` one: agents were seen
 * that call every end so (`acp-quirks.ts`). Files and terminals of Heddle it is not lent: it has its own, inside the sandbox.
 */
import { addUsage, HeddleError, NO_USAGE, type HandleOrigin, type InputPart, type Usage } from "@heddle/protocol";
import { z } from "zod";
import { capabilities, requireAsking } from "../abilities.ts";
import { createAcpItems, type AcpItems } from "./acp-items.ts";
import { createAcpPermissions } from "./acp-permissions.ts";
import { quirksOf, type AcpQuirks } from "./acp-quirks.ts";
import type { Conversation, Dialect, NativeOutcome, ProgramTurn, Wire } from "./conversation.ts";
import { ASKING } from "./opencode-permissions.ts";
import { codeOfBody, codeOfStatus } from "./provider-status.ts";
import { BEGIN_MS, createRpc, REQUEST_MS, type RpcFailure, type RpcPeer } from "./rpc.ts";

export const acpDialect: Dialect = {
  capabilities: capabilities("approvals", "asksFirst", "images", "outputSchema", "resume", "reasoning", "plan"),
  launch: () => ({ args: [], variables: OF_OPENCODE }),
  open,
};

/** It allows itself everything unless it is told otherwise, and over ACP there is no other way; others do not know it. */
const OF_OPENCODE = { OPENCODE_PERMISSION: JSON.stringify(ASKING) };

const CLIENT = { name: "heddle", title: "Heddle", version: "1" };
const LENT = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };

const Initialized = z.object({
  protocolVersion: z.number(),
  agentInfo: z.object({ name: z.string(), version: z.string().optional() }).nullish(),
  agentCapabilities: z
    .looseObject({
      loadSession: z.boolean().default(false),
      promptCapabilities: z.looseObject({ image: z.boolean().default(false) }).nullish(),
      sessionCapabilities: z.looseObject({ resume: z.unknown().optional() }).nullish(),
    })
    .nullish(),
});
const Opened = z.object({
  sessionId: z.string().optional(),
  modes: z.object({ currentModeId: z.string(), availableModes: z.array(z.object({ id: z.string() })) }).nullish(),
  models: z.object({ currentModelId: z.string() }).nullish(),
});
const Counts = z.object({
  inputTokens: z.number().default(0),
  outputTokens: z.number().default(0),
  cachedReadTokens: z.number().nullish(),
  cachedWriteTokens: z.number().nullish(),
  thoughtTokens: z.number().nullish(),
  totalTokens: z.number().nullish(),
});
type Counts = z.infer<typeof Counts>;
/** Where an answer without `usage` may tell it. */
const Quota = z
  .object({ quota: z.object({ token_count: z.object({ input_tokens: z.number(), output_tokens: z.number() }) }) })
  .transform(({ quota: { token_count } }) => ({
    inputTokens: token_count.input_tokens,
    outputTokens: token_count.output_tokens,
  }));
const Prompted = z.object({ stopReason: z.string(), usage: Counts.nullish(), _meta: z.unknown().optional() });
const CallNews = z.object({ _meta: z.object({ usage: Counts }) });
const Update = z.object({ sessionId: z.string(), update: z.looseObject({ sessionUpdate: z.string() }) });

interface State {
  sessionId: string;
  quirks: AcpQuirks;
  readsImages: boolean;
  model: string | undefined;
  /** News of what was said before is not told again. */
  isReplaying: boolean;
  isStopping: boolean;
  counted: Counts | undefined;
  /** Told of calls of the model since the prompt. */
  readonly calls: Counts[];
}

function open(wire: Wire, turn: ProgramTurn): Conversation {
  const items = createAcpItems(turn, () => state.quirks);
  const permissions = createAcpPermissions(turn, items);
  const state: State = {
    sessionId: "",
    quirks: quirksOf(undefined),
    readsImages: false,
    model: turn.model,
    isReplaying: false,
    isStopping: false,
    counted: countsOf(turn.countedBefore),
    calls: [],
  };
  const rpc = createRpc({
    runner: "the agent",
    head: { jsonrpc: "2.0" },
    wire,
    async onNotification(method, params) {
      if (method !== "session/update") return method.startsWith("_") ? undefined : turn.unknown(method);
      const news = Update.safeParse(params).data;
      if (news === undefined) return turn.unknown("session/update");
      if (state.isReplaying || news.sessionId !== state.sessionId) return;
      const used = CallNews.safeParse(news.update).data?._meta.usage;
      if (used !== undefined) state.calls.push(used);
      await items.heard(news.update);
    },
    onRequest: (method, params) => (method === "session/request_permission" ? permissions.answer(params) : undefined),
    onUnknown: turn.unknown,
  });
  return {
    async begin() {
      const params = { protocolVersion: 1, clientCapabilities: LENT, clientInfo: CLIENT };
      const { agentInfo, agentCapabilities } = Initialized.parse(await rpc.request("initialize", params, BEGIN_MS));
      state.quirks = quirksOf(agentInfo ?? undefined);
      state.readsImages = agentCapabilities?.promptCapabilities?.image === true;
      const resume = resumeMethod(agentCapabilities ?? undefined, state.quirks);
      turn.declared({ images: state.readsImages, resume: resume !== undefined });
      if (state.quirks.heldMode !== undefined) declareUnasking(turn, { asksFirst: false });
      if (state.quirks.mayNotAsk === true) declareUnasking(turn, { asksFirst: false, approvals: false });
      return enter({ rpc, turn, state }, resume);
    },
    receive: (message) => rpc.receive(message),
    async prompt(input, told) {
      items.start();
      state.calls.length = 0;
      state.isStopping = false;
      const prompt = contentOf(input, told, state.readsImages);
      const answer = await rpc.ask("session/prompt", { sessionId: state.sessionId, prompt });
      const said = await items.finish();
      if (answer.kind === "error") {
        if (state.isStopping) return { kind: "interrupted", native: { reason: "cancelled", confidence: "likely" } };
        return { kind: "failed", error: refusal(answer.error, { said, hasAsked: items.hasFailed }) };
      }
      const { stopReason, usage, _meta } = Prompted.parse(answer.result);
      const counts = usage ?? Quota.safeParse(_meta).data;
      await turn.spent({ model: state.model, text: said, stopReason, usage: usageOf(state, counts) });
      const isToldToStop = turn.signal.aborted;
      return outcomeOf(stopReason, { said, items, state, hasAny: turn.items.hasAny, isToldToStop });
    },
    steer: () => Promise.resolve(false),
    async interrupt() {
      await rpc.notify("session/cancel", { sessionId: state.sessionId });
      state.isStopping = true;
    },
    lost: (error) => rpc.lost(error),
  };
}

type Able = NonNullable<z.infer<typeof Initialized>["agentCapabilities"]>;

/** Undefined: it cannot continue a conversation of an earlier process. */
function resumeMethod(able: Able | undefined, { forgets }: AcpQuirks): string | undefined {
  if (forgets === true) return undefined;
  if (able?.sessionCapabilities?.resume) return "session/resume";
  return able?.loadSession === true ? "session/load" : undefined;
}

/** `runner.unsupported` for a turn in which it has to ask all the same. */
function declareUnasking(
  { declared, settings, envelope }: ProgramTurn,
  unable: { readonly asksFirst: false; readonly approvals?: false },
): void {
  declared(unable);
  requireAsking({ name: settings.runner ?? "acp", capabilities: { ...acpDialect.capabilities, ...unable } }, envelope);
}

interface Entering {
  readonly rpc: RpcPeer;
  readonly turn: ProgramTurn;
  readonly state: State;
}

/** Into the conversation of the thread, or a new one where the agent has none, or has lost it. */
async function enter({ rpc, turn, state }: Entering, resume: string | undefined): Promise<"knows" | "forgot"> {
  const { handle, workspace: cwd } = turn;
  const where = { cwd, mcpServers: [] };
  if (handle !== undefined && !handle.isOfOther && resume !== undefined) {
    state.sessionId = handle.id;
    state.isReplaying = true;
    const again = await rpc.ask(resume, { sessionId: handle.id, ...where }, BEGIN_MS);
    state.isReplaying = false;
    if (again.kind === "result") {
      await settle({ rpc, turn, state }, again.result, "resumed");
      return "knows";
    }
    await turn.warn(
      "runner.failed",
      `the agent has lost its conversation, and gets the earlier messages as text: ${again.error.message}`,
    );
  }
  const answer = await rpc.ask("session/new", where, BEGIN_MS);
  if (answer.kind === "error") throw refusal(answer.error);
  await settle({ rpc, turn, state }, answer.result, handle === undefined ? "new" : "retold");
  return "forgot";
}

async function settle({ rpc, turn, state }: Entering, opened: unknown, origin: HandleOrigin): Promise<void> {
  const { sessionId = state.sessionId, modes, models } = Opened.parse(opened ?? {});
  state.sessionId = sessionId;
  state.model ??= models?.currentModelId;
  const { askMode, heldMode = askMode } = state.quirks;
  const modeId = turn.envelope.sandbox === "off" ? askMode : heldMode;
  const hasMode = modes?.availableModes.some(({ id }) => id === modeId) ?? modeId !== undefined;
  if (modeId !== undefined && hasMode && modes?.currentModeId !== modeId) {
    await rpc.request("session/set_mode", { sessionId, modeId }, REQUEST_MS);
  }
  await turn.connected({ handle: sessionId, origin, model: state.model });
}

function contentOf(input: readonly InputPart[], told: string | undefined, readsImages: boolean): readonly object[] {
  const before = told === undefined ? [] : [{ type: "text", text: told }];
  return [
    ...before,
    ...input.map((part) => {
      if (part.type === "text") return { type: "text", text: part.text };
      if (readsImages) return { type: "image", mimeType: part.mediaType, data: part.base64 };
      throw new HeddleError("runner.unsupported", "this agent program does not accept images; leave them out");
    }),
  ];
}

function countsOf(usage: Usage | undefined): Counts | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, cachedInputTokens, cacheWriteInputTokens, outputTokens, reasoningOutputTokens } = usage;
  return {
    inputTokens: inputTokens - cachedInputTokens - cacheWriteInputTokens,
    outputTokens,
    cachedReadTokens: cachedInputTokens,
    cachedWriteTokens: cacheWriteInputTokens,
    thoughtTokens: reasoningOutputTokens,
  };
}

const KEYS = ["inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens", "thoughtTokens"] as const;

/** Less than before: a new process counts from nothing again. */
function isLess(counts: Counts, before: Counts): boolean {
  return KEYS.some((key) => (counts[key] ?? 0) < (before[key] ?? 0));
}

/** Of this turn. What was counted before is taken off; what is not told stays nothing. */
function usageOf(state: State, counts: Counts | undefined): Usage {
  const { usage } = state.quirks;
  if (usage === "calls")
    return state.calls.map((call) => usageSince(apartFromCached(call), undefined)).reduce(addUsage, NO_USAGE);
  if (counts === undefined || usage === "none") return NO_USAGE;
  const earlier = usage === "session" ? state.counted : undefined;
  const now = apartFromCached(counts);
  const before = earlier !== undefined && isLess(now, earlier) ? undefined : earlier;
  state.counted = now;
  return usageSince(now, before);
}

/** The protocol counts what was cached apart; some count it as input as well, and their total tells. */
function apartFromCached(counts: Counts): Counts {
  const { inputTokens, outputTokens, cachedReadTokens, cachedWriteTokens, totalTokens } = counts;
  const cached = (cachedReadTokens ?? 0) + (cachedWriteTokens ?? 0);
  if (totalTokens !== inputTokens + outputTokens) return counts;
  return { ...counts, inputTokens: Math.max(0, inputTokens - cached) };
}

function usageSince(now: Counts, before: Counts | undefined): Usage {
  const since = (key: (typeof KEYS)[number]): number => Math.max(0, (now[key] ?? 0) - (before?.[key] ?? 0));
  const [cached, written] = [since("cachedReadTokens"), since("cachedWriteTokens")];
  return {
    inputTokens: since("inputTokens") + cached + written,
    cachedInputTokens: cached,
    cacheWriteInputTokens: written,
    outputTokens: since("outputTokens"),
    reasoningOutputTokens: since("thoughtTokens"),
  };
}

interface Ended {
  readonly said: string;
  readonly items: AcpItems;
  readonly state: State;
  readonly hasAny: boolean;
  /** It may not have been told yet. */
  readonly isToldToStop: boolean;
}

function outcomeOf(reason: string, { said, items, state, hasAny, isToldToStop }: Ended): NativeOutcome {
  if (state.isStopping) return { kind: "interrupted", native: { reason, confidence: "certain" } };
  const { problem } = items;
  if (problem !== undefined) return { kind: "failed", error: refusal({ code: 0, message: problem }) };
  if (state.quirks.hasThreadStatus === true && items.hasFailed) {
    return { kind: "failed", error: refusal({ code: 0, message: said.trim().slice(-500) || "its thread has failed" }) };
  }
  switch (reason) {
    case "end_turn":
      return { kind: "completed", native: { reason, confidence: hasAny ? "likely" : "unsure" } };
    case "max_tokens":
    case "max_turn_requests":
      return {
        kind: "failed",
        error: new HeddleError("limit.reached", `the agent reached a limit of its own: ${reason}`),
      };
    case "refusal":
      return { kind: "failed", error: new HeddleError("provider.refused", "the model declined the request") };
    case "cancelled":
      if (isToldToStop) return { kind: "interrupted", native: { reason, confidence: "certain" } };
      // Some stop when a call of theirs is declined.
      if (items.wasRefused) return { kind: "completed", native: { reason, confidence: "likely" } };
      return { kind: "interrupted", native: { reason, confidence: "likely" } };
    default:
      return { kind: "completed", native: { reason, confidence: "unsure" } };
  }
}

const AUTH_REQUIRED = -32_000;
const REFUSED_KEY = /\b(?:invalid|incorrect|expired|revoked)\b[^\n]{0,20}\bkey\b|\b401\b/i;

interface Before {
  readonly said: string;
  /** Its thread failed when it asked its provider: somebody is logged in. */
  readonly hasAsked: boolean;
}

/** What failed behind the agent it reports only as text. What came before tells a refused key from nobody being logged in. */
function refusal(
  { code, message }: RpcFailure,
  { said, hasAsked }: Before = { said: "", hasAsked: false },
): HeddleError {
  const status = Number(/\b([45]\d\d)\b/.exec(message)?.[1] ?? (code >= 400 && code < 600 ? code : 0));
  const found = status === 0 ? codeOfBody(message) : codeOfStatus(status);
  const last = code === AUTH_REQUIRED ? said.trim().slice(-500) : "";
  const words = last === "" ? message : `${message}: ${last}`;
  const isLogin = code === AUTH_REQUIRED || /\b(?:log ?in|authenticat|api key)/i.test(message);
  const isRefused = hasAsked || REFUSED_KEY.test(words) || codeOfBody(last) === "auth.rejected";
  const login = isRefused ? "auth.rejected" : "runner.logged-out";
  return new HeddleError(found ?? (isLogin ? login : "runner.failed"), `the agent says: ${words}`);
}
