/**
 * Codex over `codex app-server`. Its own sandbox cannot be made inside Heddle's, which holds it and everything it starts, so
 * it is started without one; whether it asks is set from the turn's policy. What it says of the end of a turn is relied on.
 */
import { HeddleError, NO_USAGE, type HandleOrigin, type InputPart } from "@heddle/protocol";
import { z } from "zod";
import { capabilities } from "../abilities.ts";
import { createCodexItems, type CodexItems } from "./codex-items.ts";
import { createCodexQuestions } from "./codex-questions.ts";
import type { Conversation, Dialect, NativeOutcome, ProgramTurn, Wire } from "./conversation.ts";
import { codeOfStatus } from "./provider-status.ts";
import { BEGIN_MS, createRpc, REQUEST_MS, type RpcPeer } from "./rpc.ts";

export const codexDialect: Dialect = {
  capabilities: capabilities(
    "steering",
    "approvals",
    "asksFirst",
    "images",
    "outputSchema",
    "resume",
    "fork",
    "requests",
    "usage",
    "models",
    "effort",
    "instructions",
    "reasoning",
    "plan",
    "liveOutput",
  ),
  holdsSchema: true,
  launch: () => ({ args: [], variables: {} }),
  open,
};

const CLIENT = { name: "heddle", title: "Heddle", version: "1" };

const Started = z.object({ thread: z.object({ id: z.string() }), model: z.string().optional() });
const TurnStarted = z.object({ turn: z.object({ id: z.string() }) });
const TurnError = z.object({
  message: z.string(),
  codexErrorInfo: z.unknown().optional(),
  additionalDetails: z.string().nullish(),
});
const TurnEnded = z.object({
  turn: z.object({ id: z.string(), status: z.string(), error: TurnError.nullish() }),
});
const Counts = z.object({
  totalTokens: z.number(),
  inputTokens: z.number(),
  cachedInputTokens: z.number().default(0),
  cacheWriteInputTokens: z.number().default(0),
  outputTokens: z.number(),
  reasoningOutputTokens: z.number().default(0),
});
const TokenUsage = z.object({ tokenUsage: z.object({ total: Counts, last: Counts }) });
const ErrorNews = z.object({ error: TurnError, willRetry: z.boolean().default(false) });

function open(wire: Wire, turn: ProgramTurn): Conversation {
  const items = createCodexItems(turn);
  const questions = createCodexQuestions(turn, items);
  const state: State = { threadId: "", turnId: undefined, ended: undefined, lastTotal: undefined, model: undefined };
  const rpc = createRpc({
    runner: "codex",
    head: {},
    wire,
    onNotification: createEars(turn, items, state),
    onRequest: (method, params) => questions.answer(method, params),
    onUnknown: turn.unknown,
  });
  return {
    async begin() {
      await rpc.request("initialize", { clientInfo: CLIENT, capabilities: { experimentalApi: true } }, BEGIN_MS);
      await rpc.notify("initialized", {});
      const { thread, model, origin } = await enter(rpc, turn);
      state.threadId = thread.id;
      state.model = model ?? turn.model;
      await turn.connected({ handle: thread.id, origin, model: state.model });
      return origin === "retold" ? "forgot" : "knows";
    },
    receive: (message) => rpc.receive(message),
    async prompt(input, told) {
      const ended = Promise.withResolvers<NativeOutcome>();
      // It may end before it has said that it begins.
      ended.promise.catch(() => undefined);
      state.ended = ended;
      const { effort, outputSchema } = turn.settings;
      const more = {
        ...(effort === undefined ? {} : { effort }),
        ...(outputSchema === undefined ? {} : { outputSchema }),
      };
      const params = { threadId: state.threadId, input: inputOf(input, told), ...more };
      const answer = await rpc.request("turn/start", params, REQUEST_MS);
      state.turnId ??= TurnStarted.safeParse(answer).data?.turn.id;
      return ended.promise;
    },
    async steer(input) {
      if (state.turnId === undefined) return false;
      const params = { threadId: state.threadId, expectedTurnId: state.turnId, input: inputOf(input, undefined) };
      return (await rpc.ask("turn/steer", params, REQUEST_MS)).kind === "result";
    },
    async interrupt() {
      if (state.turnId === undefined) return;
      await rpc.ask("turn/interrupt", { threadId: state.threadId, turnId: state.turnId }, REQUEST_MS);
    },
    lost(error) {
      rpc.lost(error);
      state.ended?.reject(error);
    },
  };
}

/** What it says by itself. */
function createEars(turn: ProgramTurn, items: CodexItems, state: State) {
  async function used(params: unknown): Promise<void> {
    const usage = TokenUsage.safeParse(params).data?.tokenUsage;
    // It is told again when nothing was added.
    if (usage === undefined || usage.total.totalTokens === state.lastTotal) return;
    state.lastTotal = usage.total.totalTokens;
    const { totalTokens: _, ...counts } = usage.last;
    await turn.spent({ model: state.model, text: items.takeText(), stopReason: "stop", usage: counts });
  }

  async function warned(params: unknown): Promise<void> {
    const news = ErrorNews.safeParse(params).data;
    if (news?.willRetry !== true) return;
    const { message, codexErrorInfo, additionalDetails: why } = news.error;
    await turn.warn(codeOf(codexErrorInfo), typeof why === "string" ? `${message}: ${why}` : message);
  }

  async function ended(params: unknown): Promise<void> {
    const end = TurnEnded.safeParse(params).data?.turn;
    // The end of another turn of the same program.
    if (end === undefined || (state.turnId !== undefined && end.id !== state.turnId)) return;
    const text = items.takeText();
    if (text !== "") await turn.spent({ model: state.model, text, stopReason: "stop", usage: NO_USAGE });
    state.turnId = undefined;
    state.ended?.resolve(outcomeOf(end, turn.items.hasAny));
  }

  return async (method: string, params: unknown): Promise<void> => {
    switch (method) {
      case "turn/started":
        state.turnId = TurnStarted.safeParse(params).data?.turn.id ?? state.turnId;
        return;
      case "turn/completed":
        return ended(params);
      case "thread/tokenUsage/updated":
        return used(params);
      case "error":
        return warned(params);
      default:
        if (!(await items.heard(method, params)) && !IGNORED.test(method)) turn.unknown(method);
    }
  };
}

interface State {
  threadId: string;
  turnId: string | undefined;
  ended: PromiseWithResolvers<NativeOutcome> | undefined;
  lastTotal: number | undefined;
  model: string | undefined;
}

/** What clients show and a turn has no use for. */
const IGNORED =
  /^(?:thread\/(?:started|readState\/|status\/changed|name\/updated|settings\/updated|goal\/)|turn\/diff\/updated|account\/|remoteControl\/|configWarning|warning|deprecationNotice|serverRequest\/resolved|mcpServer\/|app\/|skills\/|hook\/)/;

interface Entered extends z.infer<typeof Started> {
  readonly origin: HandleOrigin;
}

async function enter(rpc: RpcPeer, turn: ProgramTurn): Promise<Entered> {
  const { handle, settings, workspace, model } = turn;
  const { baseInstructions, developerInstructions } = settings;
  const wanted = {
    cwd: workspace,
    approvalPolicy: settings.approvalPolicy,
    approvalsReviewer: "user",
    sandbox: "danger-full-access",
    ...(model === undefined ? {} : { model }),
    ...(baseInstructions === undefined ? {} : { baseInstructions }),
    ...(developerInstructions === undefined ? {} : { developerInstructions }),
  };
  if (handle === undefined) return { ...started(await rpc.request("thread/start", wanted, BEGIN_MS)), origin: "new" };
  const method = handle.isOfOther ? "thread/fork" : "thread/resume";
  const again = await rpc.ask(method, { threadId: handle.id, excludeTurns: true, ...wanted }, BEGIN_MS);
  if (again.kind === "result") return { ...started(again.result), origin: handle.isOfOther ? "forked" : "resumed" };
  await turn.warn(
    "runner.failed",
    `codex has lost its conversation, and gets the earlier messages as text: ${again.error.message}`,
  );
  return { ...started(await rpc.request("thread/start", wanted, BEGIN_MS)), origin: "retold" };
}

function started(answer: unknown): z.infer<typeof Started> {
  const found = Started.safeParse(answer);
  if (found.success) return found.data;
  throw new HeddleError("runner.malformed", "codex answered without a thread");
}

function inputOf(input: readonly InputPart[], told: string | undefined): readonly object[] {
  const before = told === undefined ? [] : [{ type: "text", text: told, text_elements: [] }];
  return [
    ...before,
    ...input.map((part) =>
      part.type === "text"
        ? { type: "text", text: part.text, text_elements: [] }
        : { type: "image", url: `data:${part.mediaType};base64,${part.base64}` },
    ),
  ];
}

type End = z.infer<typeof TurnEnded>["turn"];

function outcomeOf({ status, error }: End, hasAny: boolean): NativeOutcome {
  if (status === "completed") {
    return { kind: "completed", native: { reason: status, confidence: hasAny ? "certain" : "unsure" } };
  }
  if (status === "interrupted") return { kind: "interrupted", native: { reason: status, confidence: "certain" } };
  const message = `codex: ${messageIn(error?.message ?? status)}`;
  return { kind: "failed", error: new HeddleError(codeOf(error?.codexErrorInfo), message) };
}

/** It may be the body of the provider's answer. */
function messageIn(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    const found = z.object({ error: z.object({ message: z.string() }) }).safeParse(body);
    return found.success ? found.data.error.message : text;
  } catch {
    return text;
  }
}

const CODES: Readonly<Record<string, HeddleError["code"]>> = {
  unauthorized: "auth.rejected",
  usageLimitExceeded: "provider.rate-limited",
  serverOverloaded: "provider.overloaded",
  internalServerError: "provider.overloaded",
  httpConnectionFailed: "provider.unreachable",
  responseStreamConnectionFailed: "provider.unreachable",
  responseStreamDisconnected: "provider.cut",
  responseTooManyFailedAttempts: "provider.unreachable",
};

/** A failure of the connection too may hold the status of an answer. */
const Info = z.record(z.string(), z.object({ httpStatusCode: z.number().nullish() }).nullish());

function codeOf(info: unknown): HeddleError["code"] {
  if (typeof info === "string") return CODES[info] ?? "provider.rejected";
  const [name, more] = Object.entries(Info.safeParse(info).data ?? {})[0] ?? [];
  const status = more?.httpStatusCode;
  return typeof status === "number" && status >= 400
    ? codeOfStatus(status)
    : (CODES[name ?? ""] ?? "provider.rejected");
}
