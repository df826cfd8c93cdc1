/**
 * Opens an engine in the process of a program, with the configuration, keys and record of the command line. Questions are
 * events that the program answers; a turn is asked to ask only where the program or the configuration says so, because
 * most programs have no user to ask.
 */
import path from "node:path";
import { HeddleError, OWNER, PLAIN, reasonOf, type Decision, type TurnSettings } from "@heddle/protocol";
import { StartTurnBody, streamedEvent, type StartTurnInput } from "@heddle/protocol/http";
import { effectiveConfig, makeHome, readConfiguration } from "@heddle/runtime/config";
import { checkTable } from "@heddle/runtime/config-check";
import { openServing, type Serving } from "@heddle/runtime/serving";
import { requireFolder } from "@heddle/runtime/settings";
import { asAnswer, openTurn } from "./turn.ts";
import type { Answer, EventsOptions, Heddle, OpenOptions, StartTurn, Turn } from "./types.ts";

/** A question that no program answers is declined by policy, so that no turn waits for ever. */
const APPROVAL_TIMEOUT_SEC = 600;
const ORIGIN = "engine";

export async function openInProcess(options: OpenOptions): Promise<Heddle> {
  const { profile, config: table = {}, readsConfigFile = true, log = () => undefined } = options;
  const env = { ...(options.env ?? process.env), ...(options.home === undefined ? {} : { HEDDLE_HOME: options.home }) };
  const read = await readConfiguration({ isIgnored: !readsConfigFile, profile }, env);
  // The profile is part of the result; named once more it would count before what the program gave.
  const { profile: _profile, ...file } = effectiveConfig({ file: read.file, overrides: checkTable(table) }, profile);
  const config = { approval_timeout_sec: APPROVAL_TIMEOUT_SEC, ...file };
  const configuration = { ...read, choices: {}, file, overrides: {}, config };
  const home = await makeHome(env);
  await using unless = new AsyncDisposableStack();
  const serving = await openServing(unless, { configuration, home, env, log });
  const asks = file.approval_policy === undefined ? "never" : undefined;
  const workspace = path.resolve(options.workspace ?? process.cwd());
  return new OpenHeddle({ ...serving, home, asks, workspace, ends: unless.move() });
}

type AskedTurn = ReturnType<typeof StartTurnBody.parse>;

interface Opened extends Pick<Serving, "heddle" | "settings"> {
  readonly home: string;
  /** What a turn that says nothing runs with; undefined: what the configuration says. */
  readonly asks: "never" | undefined;
  readonly workspace: string;
  readonly ends: AsyncDisposableStack;
}

class OpenHeddle implements Heddle {
  readonly home: string;
  readonly #opened: Opened;
  /** Ends what is still being read when the record closes. */
  readonly #reading = new AbortController();
  /** Turns that were begun here, each with its end. */
  readonly #running = new Map<string, Promise<void>>();
  #closing: Promise<void> | undefined;

  constructor(opened: Opened) {
    this.home = opened.home;
    this.#opened = opened;
  }

  async startTurn({ thread, onDelta, signal, ...given }: StartTurn): Promise<Turn> {
    this.#requireOpen();
    signal?.throwIfAborted();
    const { heddle: engine } = this.#opened;
    const asked = parseTurn(given);
    const known = thread === undefined ? undefined : await engine.findThread(thread);
    const folder = asked.workspace ?? (known === undefined ? this.#opened.workspace : undefined);
    const workspace = folder === undefined ? undefined : await requireFolder(path.resolve(folder), "workspace ");
    const settings = await this.#settingsFor(asked, known?.id, workspace);
    const handle = await engine.as(OWNER).startTurn({
      thread: known?.id ?? { workspace: workspace ?? this.#opened.workspace, origin: ORIGIN },
      ...(known === undefined || workspace === undefined ? {} : { workspace }),
      input: asked.input,
      settings,
      ...(asked.clientId === undefined ? {} : { clientId: asked.clientId }),
      ...(asked.ceiling === undefined ? {} : { keep: { ceiling: asked.ceiling } }),
    });
    const { turnId, done } = handle;
    const forget = (): void => void this.#running.delete(turnId);
    this.#running.set(turnId, done.then(forget, forget));
    return openTurn({ engine, handle, onDelta, signal });
  }

  async *events(
    threadId: string,
    { after = 0, live = false, signal }: EventsOptions = {},
  ): ReturnType<Heddle["events"]> {
    this.#requireOpen();
    const { journal } = this.#opened.heddle;
    const { id } = await this.#opened.heddle.findThread(threadId);
    const last = live ? Number.POSITIVE_INFINITY : await journal.version(id);
    if (after >= last) return;
    const ends = AbortSignal.any([this.#reading.signal, ...(signal === undefined ? [] : [signal])]);
    for await (const event of journal.tail({ stream: id, after, signal: ends })) {
      yield streamedEvent(event);
      if (event.version >= last) return;
    }
  }

  async answerApproval(threadId: string, approvalId: string, answer: Decision | Answer): Promise<void> {
    this.#requireOpen();
    const { id } = await this.#opened.heddle.findThread(threadId);
    await this.#opened.heddle.as(OWNER).answer({ threadId: id, approvalId, ...asAnswer(answer) });
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    const { heddle, ends } = this.#opened;
    const reason = { code: "turn.interrupted", message: "the engine was closed" } as const;
    // A turn that waits for an answer could be left for another process, but this one keeps running and counts as its holder.
    const turns = [...this.#running].map(async ([turnId, ended]) => {
      await heddle.as("system").interrupt(turnId, reason);
      await ended;
    });
    await Promise.allSettled(turns);
    this.#reading.abort();
    await ends.disposeAsync();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new HeddleError("usage.invalid", "this engine is closed; open another one");
  }

  /** What is not said is as the thread has it. */
  async #settingsFor(
    asked: AskedTurn,
    threadId: string | undefined,
    workspace: string | undefined,
  ): Promise<TurnSettings> {
    const { heddle: engine, settings, asks } = this.#opened;
    const { clientId, outputSchema, limits, runner, model, provider, effort, approvalPolicy = asks, mode } = asked;
    const { sandboxMode, envelope, ceiling } = asked;
    const stored = threadId === undefined ? undefined : await engine.storedSettings(threadId, clientId);
    const patch = { runner, model, provider, effort, sandboxMode, envelope, ceiling, approvalPolicy, mode };
    return {
      ...(await settings.resolve({ workspace: workspace ?? stored?.workspace, stored, patch })),
      ...(outputSchema === undefined ? {} : { outputSchema }),
      ...(limits === undefined ? {} : { limits }),
    };
  }
}

function parseTurn(given: StartTurnInput): AskedTurn {
  const parsed = StartTurnBody.safeParse(given, PLAIN);
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new HeddleError("usage.invalid", `startTurn: ${reasonOf(parsed.error)}`, { details: { field } });
}
