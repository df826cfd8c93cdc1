/**
 * Claude Code over stream-json, with its control protocol for permissions. Every call that changes something is asked about,
 * and policy answers; what an envelope never permits is not offered to its model at all.
 */
import { randomUUID } from "node:crypto";
import { HeddleError, reasonOf, type InputPart } from "@heddle/protocol";
import { z } from "zod";
import { capabilities } from "../abilities.ts";
import { createClaudeItems, type ClaudeItems } from "./claude-items.ts";
import { createClaudePermissions } from "./claude-permissions.ts";
import {
  ConversationLost,
  originOf,
  type Conversation,
  type Dialect,
  type LaunchedTurn,
  type NativeOutcome,
  type ProgramTurn,
  type Wire,
} from "./conversation.ts";
import { codeOfStatus } from "./provider-status.ts";
import { BEGIN_MS, REQUEST_MS } from "./rpc.ts";

const ABILITIES = capabilities(
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
);

/** Between a result and the next word about a message that is queued. */
const SETTLE_MS = 10_000;

export const claudeDialect: Dialect = createClaudeDialect();

export function createClaudeDialect(settleMs = SETTLE_MS): Dialect {
  return {
    capabilities: ABILITIES,
    launch: (turn) => ({ args: launchArgs(turn), variables: {} }),
    open: (wire, turn) => open(wire, turn, settleMs),
  };
}

const SPEAKING = [
  "-p",
  "--input-format",
  "stream-json",
  "--output-format",
  "stream-json",
  "--verbose",
  "--include-partial-messages",
  "--replay-user-messages",
  // Its permission prompts come as requests.
  "--permission-prompt-tool",
  "stdio",
  "--permission-mode",
  "default",
];

const WRITES = ["Write", "Edit", "NotebookEdit"];
/** A search is carried out by its maker, outside every sandbox here. */
const REACHES = ["WebFetch", "WebSearch"];

function launchArgs({ settings, envelope, model, handle, newHandle }: LaunchedTurn): readonly string[] {
  const { effort, baseInstructions, developerInstructions } = settings;
  const refused = [
    ...(envelope.effects.includes("write") ? [] : WRITES),
    ...(envelope.effects.includes("exec") ? [] : ["Bash"]),
    ...(envelope.network === "all" ? [] : REACHES),
  ];
  const option = (name: string, value: string | undefined): string[] => (value === undefined ? [] : [name, value]);
  return [
    ...SPEAKING,
    ...(handle === undefined ? ["--session-id", newHandle] : ["--resume", handle.id]),
    ...(handle?.isOfOther === true ? ["--fork-session", "--session-id", newHandle] : []),
    ...option("--model", model),
    ...option("--effort", effort),
    ...option("--system-prompt", baseInstructions),
    ...option("--append-system-prompt", developerInstructions),
    ...(refused.length === 0 ? [] : ["--disallowedTools", refused.join(",")]),
  ];
}

const Kind = z.object({ type: z.string() });
const System = z.object({ subtype: z.string(), session_id: z.string().optional(), model: z.string().optional() });
const Retry = z.object({
  attempt: z.number(),
  max_retries: z.number(),
  retry_delay_ms: z.number(),
  error_status: z.number().nullish(),
  error: z.string().nullish(),
});
const Lifecycle = z.object({ command_uuid: z.string(), state: z.string() });
const Replay = z.object({ uuid: z.string(), isReplay: z.literal(true) });
const Result = z.object({
  subtype: z.string().default(""),
  is_error: z.boolean().default(false),
  terminal_reason: z.string().nullish(),
  api_error_status: z.number().nullish(),
  result: z.string().nullish(),
  errors: z.array(z.string()).nullish(),
});
const ControlResponse = z.object({
  response: z.object({ subtype: z.string(), request_id: z.string(), error: z.string().optional() }),
});
const ControlRequest = z.object({ request_id: z.string(), request: z.looseObject({ subtype: z.string() }) });
const ControlCancel = z.object({ request_id: z.string() });

function open(wire: Wire, turn: ProgramTurn, settleMs: number): Conversation {
  const controls = createControls(wire);
  const state: State = {
    queued: new Map(),
    tellsQueue: false,
    ended: undefined,
    prompt: "",
    sessionId: turn.handle === undefined || turn.handle.isOfOther ? turn.newHandle : turn.handle.id,
  };

  async function say(uuid: string, input: readonly InputPart[], told: string | undefined): Promise<void> {
    state.queued.set(uuid, input);
    const message = { role: "user", content: contentOf(input, told) };
    await wire.send({ type: "user", message, parent_tool_use_id: null, session_id: state.sessionId, uuid });
  }

  function lost(error: HeddleError): HeddleError {
    const line = turn.handle === undefined ? undefined : LOST.exec(error.message)?.[0];
    const found = line === undefined ? error : new ConversationLost(line);
    controls.lost(found);
    state.ended?.reject(found);
    return found;
  }

  return {
    async begin() {
      await controls.request({ subtype: "initialize", hooks: {} }, BEGIN_MS);
      return "knows";
    },
    receive: createEars(turn, { controls, state, settleMs, lost }),
    async prompt(input, told) {
      const ended = Promise.withResolvers<NativeOutcome>();
      ended.promise.catch(() => undefined);
      state.ended = ended;
      state.prompt = randomUUID();
      await say(state.prompt, input, told);
      return ended.promise;
    },
    async steer(input) {
      if (state.ended === undefined) return false;
      await say(randomUUID(), input, undefined);
      return true;
    },
    async interrupt() {
      await controls.request({ subtype: "interrupt" }, REQUEST_MS);
    },
    lost,
  };
}

const LOST = /^.*no conversation found.*$/im;

interface State {
  /** Messages that it has not taken up yet. */
  readonly queued: Map<string, readonly InputPart[]>;
  /** It says what becomes of each message. */
  tellsQueue: boolean;
  /** Undefined: it works on nothing. */
  ended: PromiseWithResolvers<NativeOutcome> | undefined;
  /** The message that began the turn. */
  prompt: string;
  sessionId: string;
}

interface Hearing {
  readonly controls: Controls;
  readonly state: State;
  readonly settleMs: number;
  readonly lost: (error: HeddleError) => HeddleError;
}

/** What it says by itself, by type. */
function createEars(turn: ProgramTurn, hearing: Hearing): Conversation["receive"] {
  const { controls, state } = hearing;
  const items = createClaudeItems(turn);
  const permissions = createClaudePermissions(turn, items);
  const queue = createQueue(turn, items, hearing);

  async function system(message: unknown): Promise<void> {
    const news = System.safeParse(message).data;
    if (news?.subtype === "api_retry") return retrying(message);
    // Told again with every prompt.
    if (news?.subtype !== "init" || news.session_id === undefined) return;
    state.sessionId = news.session_id;
    await turn.connected({
      handle: news.session_id,
      origin: originOf(turn),
      model: news.model,
    });
  }

  /** It asks again up to ten times, for minutes, also with a key that was refused. */
  async function retrying(message: unknown): Promise<void> {
    const news = Retry.safeParse(message).data;
    if (news === undefined) return turn.unknown("system api_retry");
    const { attempt, max_retries: most, retry_delay_ms: delayMs, error_status: status, error } = news;
    const why = [error ?? "no answer", ...(typeof status === "number" ? [`status ${status}`] : [])].join(", ");
    const next = `it asks again in ${(delayMs / 1000).toFixed(1)} s (${attempt} of ${most})`;
    await turn.warn(
      typeof status === "number" ? codeOfStatus(status) : "provider.unreachable",
      `claude: the request to its model failed: ${why}; ${next}`,
    );
  }

  async function asked(message: unknown): Promise<void> {
    const found = ControlRequest.safeParse(message).data;
    if (found === undefined) return turn.unknown("control_request");
    const { request_id: id, request } = found;
    const answer = permissions.answer(id, request);
    if (answer === undefined) {
      turn.unknown(`control_request ${request.subtype}`);
      return controls.reply(id, { subtype: "error", error: `there is no ${request.subtype} here` });
    }
    answer
      .then(
        (response) => controls.reply(id, { subtype: "success", response }),
        (error: unknown) => controls.reply(id, { subtype: "error", error: reasonOf(error) }),
      )
      // The end of the program is noticed by the reader of its output.
      .catch(() => undefined);
  }

  return async (message) => {
    const type = Kind.safeParse(message).data?.type;
    switch (type) {
      case "system":
        return system(message);
      case "result":
        return queue.result(message);
      case "command_lifecycle":
        return queue.lifecycle(message);
      case "control_response":
        return controls.receive(ControlResponse.safeParse(message).data?.response);
      case "control_request":
        return asked(message);
      case "control_cancel_request":
        return permissions.cancel(ControlCancel.safeParse(message).data?.request_id);
      case "user":
        queue.replayed(message);
        return items.heard(type, message);
      case "stream_event":
      case "assistant":
        return items.heard(type, message);
      default:
        if (type !== undefined && !IGNORED.has(type)) turn.unknown(type);
    }
  };
}

/** Which of its messages it has taken up, and so which result is the end of the turn. */
function createQueue(turn: ProgramTurn, items: ClaudeItems, { state, settleMs, lost }: Hearing) {
  let settling: NodeJS.Timeout | undefined;

  function lifecycle(message: unknown): void {
    const news = Lifecycle.safeParse(message).data;
    if (news === undefined) return;
    state.tellsQueue = true;
    if (news.state !== "queued") takenUp(news.command_uuid);
  }

  function takenUp(uuid: string): void {
    if (state.queued.delete(uuid)) clearTimeout(settling);
  }

  async function result(message: unknown): Promise<void> {
    const end = Result.safeParse(message).data;
    if (end === undefined) return turn.unknown("result");
    if (end.errors?.some((error) => LOST.test(error)) === true) {
      lost(new HeddleError("runner.failed", end.errors.join("; ")));
      return;
    }
    clearTimeout(settling);
    await items.finish();
    // What was added in the meantime is taken up next, and has an end of its own.
    const isQueued = state.queued.size > 0 && state.tellsQueue && !end.is_error;
    if (isQueued) settling = setTimeout(() => finish(end), settleMs);
    else finish(end);
  }

  function finish(end: z.infer<typeof Result>): void {
    const { ended } = state;
    state.ended = undefined;
    const outcome = outcomeOf(end, turn.items.hasAny);
    // Its own prompt was answered, whatever it says of it.
    const untaken = [...state.queued].flatMap(([uuid, input]) => (uuid === state.prompt ? [] : input));
    state.queued.clear();
    ended?.resolve(outcome.kind === "completed" && untaken.length > 0 ? { ...outcome, untaken } : outcome);
  }

  /** A message that it repeats is in its conversation. */
  function replayed(message: unknown): void {
    const uuid = Replay.safeParse(message).data?.uuid;
    if (uuid !== undefined) takenUp(uuid);
  }

  return { lifecycle, replayed, result };
}

const IGNORED: ReadonlySet<string> = new Set(["keep_alive", "rate_limit_event", "tool_progress"]);

function contentOf(input: readonly InputPart[], told: string | undefined): readonly object[] {
  return [
    ...(told === undefined ? [] : [{ type: "text", text: told }]),
    ...input.map((part) =>
      part.type === "text"
        ? { type: "text", text: part.text }
        : { type: "image", source: { type: "base64", media_type: part.mediaType, data: part.base64 } },
    ),
  ];
}

/** `subtype` says success where a request was refused: what else it says decides. */
function outcomeOf(end: z.infer<typeof Result>, hasAny: boolean): NativeOutcome {
  const { subtype, is_error: isError, terminal_reason: reason, api_error_status: status } = end;
  const said = reason ?? subtype;
  if (said.startsWith("aborted")) return { kind: "interrupted", native: { reason: said, confidence: "certain" } };
  if (!isError && subtype === "success") {
    const confidence = !hasAny ? "unsure" : reason === "completed" ? "certain" : "likely";
    return { kind: "completed", native: { reason: said, confidence } };
  }
  const message = end.result ?? end.errors?.join("; ") ?? said;
  return { kind: "failed", error: new HeddleError(codeOf(status, said, subtype), `claude: ${message}`) };
}

function codeOf(status: number | null | undefined, reason: string, subtype: string): HeddleError["code"] {
  if (subtype === "error_max_turns" || subtype === "error_max_budget_usd") return "limit.reached";
  if (typeof status === "number") return codeOfStatus(status);
  return reason === "api_error" ? "provider.unreachable" : "runner.failed";
}

type ControlAnswer = { readonly subtype: string; readonly error?: string | undefined };

type Controls = ReturnType<typeof createControls>;

/** Requests both ways, by their own ids. */
function createControls(wire: Wire) {
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  let lostBy: HeddleError | undefined;
  return {
    async request(request: { readonly subtype: string; readonly hooks?: object }, timeoutMs: number): Promise<void> {
      if (lostBy !== undefined) throw lostBy;
      const id = randomUUID();
      const answer = Promise.withResolvers<void>();
      answer.promise.catch(() => undefined);
      waiting.set(id, answer);
      const late = new HeddleError(
        "runner.stalled",
        `claude has not answered ${request.subtype} within ${timeoutMs} ms`,
      );
      const timer = setTimeout(() => answer.reject(late), timeoutMs);
      try {
        await wire.send({ type: "control_request", request_id: id, request });
        await answer.promise;
      } finally {
        clearTimeout(timer);
        waiting.delete(id);
      }
    },
    receive(response: (ControlAnswer & { readonly request_id: string }) | undefined): void {
      const answer = waiting.get(response?.request_id ?? "");
      if (response?.subtype === "success") answer?.resolve();
      else answer?.reject(new HeddleError("runner.failed", `claude refused a request: ${response?.error ?? ""}`));
    },
    reply: (id: string, response: ControlAnswer & { readonly response?: object }): Promise<void> =>
      wire.send({ type: "control_response", response: { ...response, request_id: id } }),
    lost(error: HeddleError): void {
      lostBy = error;
      for (const answer of waiting.values()) answer.reject(error);
    },
  };
}
