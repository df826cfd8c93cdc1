/**
 * OpenCode over HTTP and its stream of events. It is told to ask before everything it does, and policy answers; each answer
 * counts once. It says idle at the end of every turn, also of one that failed, and then a second time.
 */
import { HeddleError, type HandleOrigin, type InputPart, type Usage } from "@heddle/protocol";
import { z } from "zod";
import { capabilities } from "../abilities.ts";
import { forwarderCommand } from "./opencode-forwarder.ts";
import type { Conversation, Dialect, NativeOutcome, ProgramTurn, Wire } from "./conversation.ts";
import { createOpenCodeHttp, type OpenCodeHttp } from "./opencode-http.ts";
import { createOpenCodeItems, OpenCodePart, type OpenCodeItems, type StepTokens } from "./opencode-items.ts";
import {
  Asked,
  ASKING,
  ASKING_RULES,
  createOpenCodePermissions,
  Questions,
  type OpenCodePermissions,
} from "./opencode-permissions.ts";
import { createEnd, ErrorNews, type State } from "./opencode-end.ts";
import { createJoined, OURS, type Joined } from "./opencode-live.ts";
import { removeUnsaid } from "./opencode-unsaid.ts";
import { BEGIN_MS } from "./rpc.ts";

/** Between the first idle of a turn that failed and the second. */
const SETTLE_MS = 1000;

export const openCodeDialect: Dialect = createOpenCodeDialect();

export function createOpenCodeDialect(settleMs = SETTLE_MS): Dialect {
  return {
    capabilities: capabilities(
      "approvals",
      "asksFirst",
      "images",
      "outputSchema",
      "resume",
      "fork",
      "requests",
      "usage",
      "models",
      "reasoning",
      "plan",
      "liveOutput",
    ),
    launch: () => ({ args: [], variables: { OPENCODE_CONFIG_CONTENT: JSON.stringify({ permission: ASKING }) } }),
    forwarder: forwarderCommand,
    open: (wire, turn) => open(wire, turn, settleMs),
  };
}

const Message = z.object({
  ready: z.string().optional(),
  /** Connections of a person who has joined. */
  live: z.number().optional(),
  event: z.unknown().optional(),
});
const Event = z.object({ type: z.string(), properties: z.record(z.string(), z.unknown()).default({}) });
const Session = z.object({ id: z.string(), parentID: z.string().optional() });
const OfSession = z.object({ sessionID: z.string().optional() });
const MessageNews = z.object({
  info: z.object({
    id: z.string(),
    role: z.string(),
    providerID: z.string().optional(),
    modelID: z.string().optional(),
    finish: z.string().nullish(),
    mode: z.string().optional(),
    time: z.object({ completed: z.number().optional() }).optional(),
  }),
});
const PartNews = z.object({ part: z.looseObject({ type: z.string(), messageID: z.string() }) });
const DeltaNews = z.object({ partID: z.string(), field: z.string(), delta: z.string() });
const Status = z.object({ status: z.object({ type: z.string(), message: z.string().default("") }) });
/** It tries for ever to reach a model that is busy. */
const MAX_RETRIES = 30;
/** Nor has it a bound where an answer says no end: it takes that for a step before the next. */
const MAX_CUT = 5;

function open(wire: Wire, turn: ProgramTurn, settleMs: number): Conversation {
  const http = createOpenCodeHttp(wire);
  const items = createOpenCodeItems(turn);
  const permissions = createOpenCodePermissions(turn, items, http);
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => undefined);
  const state: State = {
    sessionId: "",
    children: new Set(),
    messages: new Map(),
    ended: undefined,
    error: undefined,
    finish: undefined,
    model: turn.model,
    retries: 0,
    lastRetry: "",
    cut: 0,
    isHeld: false,
    settling: undefined,
  };
  const joined = createJoined(turn);
  const hear = createEars(turn, { http, items, permissions, state, settleMs, joined });
  return {
    async begin() {
      await within(ready.promise, BEGIN_MS);
      const { id, origin } = await enter(http, turn);
      state.sessionId = id;
      await wire.send({ atEnd: `/session/${id}/abort` });
      await turn.connected({ handle: id, origin, model: turn.model });
      return origin === "retold" ? "forgot" : "knows";
    },
    async receive(message) {
      if (http.receive(message)) return undefined;
      const found = Message.safeParse(message).data;
      if (found?.ready !== undefined) return ready.resolve();
      if (found?.live !== undefined) return hear.connections(found.live);
      const event = Event.safeParse(found?.event).data;
      return event === undefined ? turn.unknown("malformed") : hear.event(event);
    },
    async prompt(input, told) {
      const ended = Promise.withResolvers<NativeOutcome>();
      ended.promise.catch(() => undefined);
      Object.assign(state, { ended, error: undefined, finish: undefined, retries: 0, lastRetry: "", cut: 0 });
      const model = turn.model === undefined ? {} : { model: modelOf(turn.model) };
      await http.request("POST", `/session/${state.sessionId}/prompt_async`, { ...model, parts: partsOf(input, told) });
      return ended.promise;
    },
    steer: () => Promise.resolve(false),
    async interrupt() {
      joined.stop();
      await http.ask("POST", `/session/${state.sessionId}/abort`, {});
    },
    lost(error) {
      clearTimeout(state.settling);
      http.lost(error);
      ready.reject(error);
      state.ended?.reject(error);
    },
  };
}

async function within(done: Promise<void>, ms: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new HeddleError("runner.stalled", "opencode does not start")), ms);
  await Promise.race([done, late]).finally(() => clearTimeout(timer));
}

async function enter(http: OpenCodeHttp, turn: ProgramTurn): Promise<{ id: string; origin: HandleOrigin }> {
  const { handle } = turn;
  const begin = async (): Promise<string> =>
    Session.parse(await http.request("POST", "/session", { permission: ASKING_RULES })).id;
  if (handle === undefined) return { id: await begin(), origin: "new" };
  // The rules of a conversation are not copied with it, and without a sandbox there is nothing else.
  if (handle.isOfOther && turn.envelope.sandbox === "off") return { id: await begin(), origin: "retold" };
  const path = `/session/${encodeURIComponent(handle.id)}`;
  const known = await (handle.isOfOther ? http.ask("POST", `${path}/fork`, {}) : http.ask("GET", path));
  const session = known.status === 200 ? Session.safeParse(known.body).data : undefined;
  if (session !== undefined) {
    await removeUnsaid(http, session.id);
    return { id: session.id, origin: handle.isOfOther ? "forked" : "resumed" };
  }
  const news = `opencode has lost its conversation, and gets the earlier messages as text: status ${known.status}`;
  await turn.warn("runner.failed", news);
  return { id: await begin(), origin: "retold" };
}

function modelOf(name: string): { providerID: string; modelID: string } {
  const cut = name.indexOf("/");
  if (cut > 0) return { providerID: name.slice(0, cut), modelID: name.slice(cut + 1) };
  throw new HeddleError("model.unknown", `opencode names its models PROVIDER/MODEL, as \`opencode models\` lists them`);
}

function partsOf(input: readonly InputPart[], told: string | undefined): readonly object[] {
  const parts = input.map((part) =>
    part.type === "text"
      ? { type: "text", text: part.text, metadata: OURS }
      : { type: "file", mime: part.mediaType, url: `data:${part.mediaType};base64,${part.base64}` },
  );
  return [...(told === undefined ? [] : [{ type: "text", text: told, metadata: OURS }]), ...parts];
}

interface Hearing {
  readonly http: OpenCodeHttp;
  readonly items: OpenCodeItems;
  readonly permissions: OpenCodePermissions;
  readonly state: State;
  readonly settleMs: number;
  readonly joined: Joined;
}

/** What it tells by itself, by type. Of other conversations of its server nothing is heard. */
function createEars(turn: ProgramTurn, hearing: Hearing) {
  const { items, permissions, state, joined } = hearing;
  const end = createEnd(hearing);

  /** Words of a person begin another answer, whatever became of the one before. */
  async function said(messageId: string, part: unknown): Promise<void> {
    if (await joined.said(messageId, part))
      Object.assign(state, { isHeld: false, error: undefined, finish: undefined, cut: 0 });
  }

  async function part(properties: unknown, isChild: boolean): Promise<void> {
    const raw = PartNews.safeParse(properties).data?.part;
    if (raw !== undefined && !isChild && joined.has(raw.messageID)) return said(raw.messageID, raw);
    if (raw === undefined || (!isChild && !state.messages.has(raw.messageID))) return;
    const found = OpenCodePart.safeParse(raw);
    if (!found.success) return IGNORED_PARTS.test(raw.type) ? undefined : turn.unknown(`part ${raw.type}`);
    const { data } = found;
    if (data.type === "step-finish") {
      await spent(turn, { items, model: state.model, ...data });
      return cutOff(data.reason, state);
    }
    // It gets somewhere.
    if (data.type === "tool") state.cut = -1;
    // Of what another agent of its own says, the call that started it has the end.
    if (!isChild || data.type === "tool") await items.part(data);
  }

  async function event({ type, properties }: z.infer<typeof Event>): Promise<void> {
    const child = type === "session.created" ? Session.safeParse(properties["info"]).data : undefined;
    if (child?.parentID !== undefined && isOurs(child.parentID, state)) state.children.add(child.id);
    const of = OfSession.safeParse(properties).data?.sessionID;
    if (of !== undefined && !isOurs(of, state)) return;
    const isChild = of !== undefined && of !== state.sessionId;
    switch (type) {
      case "message.part.updated":
        return part(properties, isChild);
      case "permission.asked":
        return unattended(state, permissions.permission(Asked.parse(properties)));
      case "permission.replied":
      case "question.replied":
      case "question.rejected":
        return permissions.answered(properties);
      case "question.asked":
        return unattended(state, permissions.question(Questions.parse(properties)));
      default:
        if (!isChild) return own(type, properties);
    }
  }

  async function own(type: string, properties: Readonly<Record<string, unknown>>): Promise<void> {
    switch (type) {
      case "message.updated":
        return message(properties, { state, joined, end });
      case "message.part.delta": {
        const news = DeltaNews.safeParse(properties).data;
        return news?.field === "text" ? items.delta(news.partID, news.delta) : undefined;
      }
      case "todo.updated":
        return items.plan(properties);
      case "session.status":
        return retried(turn, properties, state);
      case "session.error":
        state.error = ErrorNews.safeParse(properties).data?.error ?? state.error;
        return undefined;
      case "session.idle":
        return end.idle();
      default:
        if (!IGNORED.test(type)) turn.unknown(type);
    }
  }

  return {
    event,
    /** A turn that only waits for the person ends when the person leaves. */
    async connections(count: number): Promise<void> {
      await joined.connections(count);
      if (!joined.isThere && state.isHeld) await end.now();
    },
  };
}

async function message(
  properties: unknown,
  { state, joined, end }: Pick<Hearing, "state" | "joined"> & { readonly end: ReturnType<typeof createEnd> },
): Promise<void> {
  const info = MessageNews.safeParse(properties).data?.info;
  if (info?.role === "user") joined.message(info.id);
  if (info === undefined || info.role !== "assistant" || info.mode === "compaction") return;
  const isOver = info.time?.completed !== undefined;
  const known = state.messages.get(info.id);
  if (known === undefined && isOver) return;
  state.messages.set(info.id, { isOver });
  if (info.providerID !== undefined && info.modelID !== undefined) state.model = `${info.providerID}/${info.modelID}`;
  state.finish = info.finish ?? state.finish;
  state.retries = 0;
  if (isOver && state.settling !== undefined) await end.now();
}

const IGNORED_PARTS = /^(?:step-start|patch|snapshot|compaction|retry|agent|subtask|file)$/;
/** What clients show and a turn has no use for. */
const IGNORED =
  /^(?:server\.|session\.(?:created|updated|deleted|diff|compacted)|message\.(?:removed|part\.removed)|file\.|plugin\.|catalog\.|reference\.|integration\.|installation\.|lsp\.|mcp\.|vcs\.|project\.|command\.|tui\.|pty\.|ide\.|global\.|worktree\.)/;

function isOurs(sessionId: string, { sessionId: own, children }: State): boolean {
  return sessionId === own || children.has(sessionId);
}

/** A question that cannot be answered ends the turn. */
function unattended({ ended }: State, answered: Promise<void>): void {
  answered.catch((error: unknown) => ended?.reject(error));
}

interface Step {
  readonly items: OpenCodeItems;
  readonly model: string | undefined;
  readonly reason: string;
  readonly tokens: z.infer<typeof StepTokens>;
  readonly cost: number;
}

/** One request to a model, as the end of a step tells it. */
export async function spent(
  turn: Pick<ProgramTurn, "spent">,
  { items, model, reason, tokens, cost }: Step,
): Promise<void> {
  const { input, output, reasoning, cache, total } = tokens;
  // What is cached is not among its input.
  const inputTokens = input + cache.read + cache.write;
  const usage: Usage = {
    inputTokens,
    cachedInputTokens: cache.read,
    cacheWriteInputTokens: cache.write,
    outputTokens: total === undefined ? output + reasoning : Math.max(output, total - inputTokens),
    reasoningOutputTokens: reasoning,
  };
  const priced = cost > 0 ? { costUsd: cost } : {};
  await turn.spent({ model, text: items.takeText(), stopReason: reason, usage, ...priced });
}

async function retried(turn: ProgramTurn, properties: unknown, state: State): Promise<void> {
  const status = Status.safeParse(properties).data?.status;
  if (status?.type !== "retry") return;
  state.retries += 1;
  if (state.retries > MAX_RETRIES) {
    const error = new HeddleError("provider.unreachable", `opencode: ${status.message}`);
    return state.ended?.resolve({ kind: "failed", error });
  }
  if (status.message === state.lastRetry) return;
  state.lastRetry = status.message;
  await turn.warn("provider.unreachable", status.message);
}

function cutOff(reason: string, state: State): void {
  state.cut = reason === "unknown" ? state.cut + 1 : 0;
  if (state.cut < MAX_CUT) return;
  const news = `opencode: answers of its model broke off ${MAX_CUT} times in a row; look at its provider`;
  state.ended?.resolve({ kind: "failed", error: new HeddleError("provider.cut", news) });
}
