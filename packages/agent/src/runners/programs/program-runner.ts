/**
 * Runs a turn by another program. Its process lives as long as the turn; what was said before it reads from its own record, or
 * gets as text. Hooks, steering, limits, interrupts and the end are those of every turn.
 *
 *   prompt recorded ─▶ process ─▶ begun ─▶ prompted ─▶ completed ─▶ input came, or a hook wants more: prompted again
 *                                            │                └▶ process leaves ─▶ completed
 *                                            ├▶ failed by its own word, silent, or gone ─▶ failed
 *                                            └▶ interrupted: told so ─▶ TERM ─▶ KILL
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  clockMs,
  HeddleError,
  OWNER,
  uuidv7,
  type InputPart,
  type ModelOutputPart,
  type NativeEnd,
  type Usage,
} from "@heddle/protocol";
import { addSpent, NOTHING_SPENT, toFailure } from "../../turns/outcome.ts";
import { outputSchemaOf, outputViolations, repairText, schemaViolated } from "../../turns/output-schema.ts";
import type { JsonSchema } from "../../turns/json-schema.ts";
import { DEFAULT_MODEL } from "../config.ts";
import { hookNotes, userMessage, warning } from "../notes.ts";
import type { Runner, Spent, TurnIo, TurnOutcome, TurnRequest } from "../runner.ts";
import {
  ConversationLost,
  type KnownHandle,
  type ModelCall,
  type NativeOutcome,
  type ProgramTurn,
} from "./conversation.ts";
import { decide } from "./decide.ts";
import {
  examine,
  requireNoSandbox,
  requireProgram,
  requireVersion,
  resumeCommand,
  type AgentProgram,
} from "./find-program.ts";
import { countedIn, readBefore, type Before } from "./handle.ts";
import { createItemLog, type ItemLog } from "./item-log.ts";
import { openLink, type Link, type LinkOptions } from "./link.ts";
import { recordPrompt, recordSteering, type Told } from "./prompt.ts";

/** Between its own way to stop and TERM. */
const INTERRUPT_MS = 1500;
/** Without a byte, while nothing of it runs and no question is open: a model that thinks is silent for minutes. */
const IDLE_MS = 10 * 60_000;
const IDLE_CHECK_MS = 5000;

export interface ProgramRunnerOptions extends LinkOptions {
  readonly idleMs?: number;
}

export function createProgramRunner(options: ProgramRunnerOptions): Runner {
  const { program, dialect, env } = options;
  let { capabilities } = dialect;
  const declared: ProgramTurn["declared"] = (found) => {
    capabilities = { ...capabilities, ...found };
  };
  return {
    name: program.runner,
    /** What the program has said of itself since counts more. */
    get capabilities() {
      return capabilities;
    },
    probe: (signal) => examine(program, env, signal),
    async check(settings) {
      // Of an envelope with a name it is known once the turn has it.
      if (settings.envelope === undefined) requireNoSandbox(program, settings.sandboxMode === "danger-full-access");
      if (program.server === undefined) await requireVersion(program, requireProgram(program, env), env);
      await outputSchemaOf(settings);
    },
    run: (turn, io) => runTurn({ ...options, declared }, turn, io),
  };
}

interface RunOptions extends ProgramRunnerOptions {
  readonly declared: ProgramTurn["declared"];
}

async function runTurn(options: RunOptions, turn: TurnRequest, io: TurnIo): Promise<TurnOutcome> {
  const spending = createSpending(options.program.runner, turn, io);
  try {
    const outcome = await converse(options, turn, io, spending);
    return { ...outcome, spent: spending.total };
  } catch (error) {
    if (io.signal.aborted) return { kind: "interrupted", spent: spending.total };
    return { kind: "failed", failure: toFailure(error), spent: spending.total };
  }
}

type Ended = { readonly kind: "completed"; readonly native: NativeEnd } | { readonly kind: "interrupted" };

async function converse(options: RunOptions, turn: TurnRequest, io: TurnIo, spending: Spending): Promise<Ended> {
  const { program, dialect, journal, declared } = options;
  const { runner } = program;
  const { settings, turnId } = turn;
  const given = await recordPrompt(turn, io);
  const canFork = dialect.capabilities.fork;
  const before = await readBefore(journal, turn, { runner, canFork });
  const schema = settings.isAnswerUnchecked === true ? undefined : await outputSchemaOf(settings);
  const items = createItemLog(turnId, io);
  const asking = { count: 0 };
  const told = tellings({ turn, io, program, asking, spending });
  const { idleMs = IDLE_MS } = options;
  const isTold = dialect.holdsSchema !== true;

  function open(handle: KnownHandle | undefined, isInstead: boolean): Promise<Link> {
    const model = settings.model === DEFAULT_MODEL ? undefined : settings.model;
    const countedBefore = countedIn(turn, handle, told.counted());
    const rest = { turnId, items, signal: io.signal, countedBefore, declared, ...told };
    return openLink(options, { turn, io, handle, isInstead, model, rest });
  }

  async function once(past: Before, isInstead: boolean): Promise<Ended> {
    let link = await open(past.handle, isInstead);
    let isDone = false;
    async function renew(): Promise<Link> {
      if (dialect.isPerPrompt !== true) return link;
      await link.end("close");
      const id = told.handle();
      link = await open(id === undefined ? undefined : { id, isOfOther: false }, isInstead);
      return link;
    }
    try {
      const ended = await untilDone({ turn, io, link, items, schema, isTold, asking, idleMs, renew }, given, past);
      isDone = ended.kind === "completed";
      return ended;
    } finally {
      await link.end(isDone ? "close" : "kill");
    }
  }

  try {
    return await once(before, false);
  } catch (error) {
    if (!(error instanceof ConversationLost) || before.handle === undefined || items.hasAny) throw error;
    const news = `${runner} has lost its conversation, and gets the earlier messages as text: ${error.message}`;
    await told.warn("runner.failed", news);
    return once({ ...before, handle: undefined, told: before.whole }, true);
  }
}

interface Telling {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly program: AgentProgram;
  readonly asking: { count: number };
  readonly spending: Spending;
}

interface Tellings extends Pick<ProgramTurn, "connected" | "decide" | "said" | "spent" | "warn"> {
  /** Of the conversation that was connected last. */
  handle(): string | undefined;
  /** In this turn. */
  counted(): Usage;
}

/** What a conversation tells of the turn. */
function tellings({ turn, io, program, asking, spending }: Telling): Tellings {
  const { turnId } = turn;
  const { runner } = program;
  const connected = new Set<string>();
  return {
    handle: () => [...connected].at(-1),
    counted: () => spending.total.usage,
    async connected({ handle, origin, model }) {
      if (connected.has(handle)) return;
      connected.add(handle);
      const named = model === undefined ? {} : { model };
      const command = resumeCommand(program, handle);
      const byHand = command === undefined ? {} : { resumeCommand: [...command] };
      await io.record([{ type: "agent.connected", v: 1, turnId, runner, handle, origin, ...named, ...byHand }]);
    },
    said: async (text) => void (await io.record(userMessage(turnId, [{ type: "text", text }]), OWNER)),
    async decide(question, act, takenBack) {
      asking.count += 1;
      try {
        return await decide(question, act, { envelope: turn.sandboxContext.envelope, io, takenBack });
      } finally {
        asking.count -= 1;
      }
    },
    spent: (call) => spending.add(call),
    warn: async (code, message) => void (await io.record(warning(turnId, code, message), "system")),
  };
}

interface Driving {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly link: Link;
  readonly items: ItemLog;
  readonly schema: JsonSchema | undefined;
  /** The agent gets the schema as text. */
  readonly isTold: boolean;
  readonly asking: { readonly count: number };
  readonly idleMs: number;
  /** For a further prompt: the same, or another process of a program that takes one prompt. */
  readonly renew: () => Promise<Link>;
}

async function untilDone(driving: Driving, given: Told, past: Before): Promise<Ended> {
  const { turn, io, items, schema, renew } = driving;
  const { turnId } = turn;
  let { link } = driving;
  const { conversation, lost } = link;
  const stopped = untilAborted(io.signal);
  const ready = conversation.begin();
  ready.catch(() => undefined);
  const begun = await Promise.race([ready, lost, stopped]);
  if (begun === "stopped") return { kind: "interrupted" };
  let input = given.input;
  const told = begun === "forgot" ? past.whole : past.told;
  const asked = driving.isTold && schema !== undefined ? [schemaText(turn.settings.outputSchema)] : [];
  let before = [...(told === undefined ? [] : [told]), ...given.notes, ...asked].join("\n\n") || undefined;
  let isRepairing = false;
  for (;;) {
    const outcome = await promptOnce({ ...driving, link }, { input, before });
    if (outcome === "stopped") return { kind: "interrupted" };
    before = undefined;
    const { added } = outcome;
    const late = [...added, ...(await recordSteering(turn, io, await io.takeSteering()))];
    if (late.length > 0) {
      input = late;
      isRepairing = false;
      link = await renew();
      continue;
    }
    const reason = isRepairing ? undefined : await io.policy.reasonToContinue(items.lastMessage);
    if (reason !== undefined) {
      await io.record(hookNotes(turnId, "Stop", [reason]), "system");
      input = [{ type: "text", text: reason }];
      link = await renew();
      continue;
    }
    const violations = schema === undefined ? [] : outputViolations(schema, answerOf(items));
    if (violations.length === 0) return { kind: "completed", native: outcome.native };
    if (isRepairing) throw schemaViolated(violations);
    isRepairing = true;
    const { code, message } = schemaViolated(violations);
    await io.record(warning(turnId, code, `${message}; the agent is asked once to fix it`), "system");
    input = [{ type: "text", text: repairText(violations) }];
    link = await renew();
  }
}

function schemaText(schema: unknown): string {
  return `When your work is done, your last message must be JSON that fits this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
}

function answerOf({ lastMessage }: ItemLog): readonly ModelOutputPart[] {
  return lastMessage === null ? [] : [{ kind: "text", text: lastMessage }];
}

interface Prompt {
  readonly input: readonly InputPart[];
  readonly before: string | undefined;
}

interface Answered {
  readonly native: NativeEnd;
  /** Input that came while the program was ending its turn. */
  readonly added: readonly InputPart[];
}

async function promptOnce(driving: Driving, { input, before }: Prompt): Promise<Answered | "stopped"> {
  const { io, link } = driving;
  const { conversation, lost } = link;
  const over = new AbortController();
  const added: InputPart[] = [];
  const answer = conversation.prompt(input, before);
  answer.catch(() => undefined);
  // Only its failure ends the wait.
  const steering = passOnSteering(driving, added, over.signal);
  const failed = steering.then(() => answer);
  failed.catch(() => undefined);
  let outcome: NativeOutcome | "stopped" | "silent";
  try {
    outcome = await Promise.race([answer, lost, failed, untilAborted(io.signal), untilIdle(driving, over.signal)]);
    if (outcome === "stopped" || outcome === "silent") await tellToStop(link, answer);
  } finally {
    over.abort();
    await steering.catch(() => undefined);
  }
  if (outcome === "stopped") return outcome;
  if (outcome === "silent") throw new HeddleError("runner.stalled", silentText(driving));
  if (outcome.kind === "failed") throw outcome.error;
  if (outcome.kind === "completed") return { native: outcome.native, added: [...(outcome.untaken ?? []), ...added] };
  if (io.signal.aborted) return "stopped";
  throw new HeddleError("runner.failed", `the agent stopped its turn by itself: ${outcome.native.reason}`);
}

/** Puts what comes in between to the agent; `added` is what it did not take any more. */
async function passOnSteering({ turn, io, link }: Driving, added: InputPart[], over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await io.steered(over);
    if (over.aborted) return;
    const input = await recordSteering(turn, io, await io.takeSteering());
    if (input.length > 0 && !(await link.conversation.steer(input))) added.push(...input);
  }
}

/** Its own way first. What it then says of its items is still recorded. */
async function tellToStop({ conversation, lost }: Link, answer: Promise<unknown>): Promise<void> {
  const giveUp = new AbortController();
  const told = conversation.interrupt().catch(() => undefined);
  const stopped = told.then(() => answer).catch(() => undefined);
  const late = sleep(INTERRUPT_MS, undefined, { signal: giveUp.signal }).catch(() => undefined);
  await Promise.race([stopped, lost.catch(() => undefined), late]);
  giveUp.abort();
}

function untilAborted(signal: AbortSignal): Promise<"stopped"> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve("stopped");
    else signal.addEventListener("abort", () => resolve("stopped"), { once: true });
  });
}

/** What runs, and who is asked, may take its time. */
async function untilIdle({ link, items, asking, idleMs }: Driving, over: AbortSignal): Promise<"silent"> {
  let busyAt = clockMs();
  for (;;) {
    await sleep(Math.min(IDLE_CHECK_MS, idleMs), undefined, { signal: over, ref: false });
    if (asking.count > 0 || items.open.length > 0) busyAt = clockMs();
    if (clockMs() - Math.max(busyAt, link.activeAt) >= idleMs) return "silent";
  }
}

function silentText({ idleMs }: Driving): string {
  return `the agent program sent nothing for ${Math.round(idleMs / 1000)} seconds and was ended`;
}

export interface Spending {
  readonly total: Spent;
  add(call: ModelCall): Promise<void>;
}

/** Each request of the agent, when it has ended; limits of the turn hold for the next one. */
export function createSpending(runner: string, turn: TurnRequest, io: Pick<TurnIo, "record">): Spending {
  const { turnId, settings } = turn;
  let total: Spent = NOTHING_SPENT;
  return {
    get total() {
      return total;
    },
    async add({ model = settings.model, text, stopReason, usage, costUsd }) {
      const requestId = uuidv7();
      const cost = costUsd === undefined ? {} : { costUsd };
      total = addSpent(total, { usage, ...cost });
      await io.record([
        // The agent asks by itself: how much it sends is not known.
        { type: "model.requested", v: 1, turnId, requestId, provider: runner, model, requestBytes: 0 },
        {
          type: "model.responded",
          v: 1,
          turnId,
          requestId,
          output: text === "" ? [] : [{ kind: "text", text }],
          stopReason,
          usage,
          ...cost,
        },
      ]);
    },
  };
}
