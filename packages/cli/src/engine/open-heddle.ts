/**
 * Opens an engine in the process of a program, with the configuration, keys and record of the command line. Questions are
 * events that the program answers; a turn is asked to ask only where the program or the configuration says so, because
 * most programs have nobody to put a question to.
 */
import path from "node:path";
import { createRedactor } from "@heddle/journal";
import { HeddleError, type TurnSettings } from "@heddle/protocol";
import { StartTurnBody, streamedEvent, type StartTurnInput } from "@heddle/protocol/http";
import type { SettingsSource } from "@heddle/server";
import type { Heddle as Engine } from "@heddle/agent";
import type { z } from "zod";
import { makeHome, openEngine } from "../app-server/engine.ts";
import { settingsSource } from "../app-server/settings-source.ts";
import { checkTable } from "../config/check-config.ts";
import { loadConfig } from "../config/read-config.ts";
import { effectiveConfig } from "../config/settings.ts";
import { skillChoices } from "../config/skill-choices.ts";
import { requireFolder } from "../workspace.ts";
import { openTurn } from "./turn.ts";
import type { EventsOptions, Heddle, OpenOptions, StartTurn, Turn } from "./types.ts";

/** A question that no program answers is declined by policy, so that no turn waits for ever. */
const APPROVAL_TIMEOUT_SEC = 600;
const ORIGIN = "engine";

export async function openInProcess(options: OpenOptions): Promise<Heddle> {
  const { profile, config: given = {}, log = () => undefined } = options;
  const env = { ...(options.env ?? process.env), ...(options.home === undefined ? {} : { HEDDLE_HOME: options.home }) };
  const { config: read } = await loadConfig(env, { isIgnored: options.readsConfigFile === false, profile });
  // The profile is part of the result; named once more it would count before what the program gave.
  const { profile: _profile, ...config } = effectiveConfig({ file: read, overrides: checkTable(given) }, profile);
  const home = await makeHome(env);
  const engine = await openEngine(home, { approval_timeout_sec: APPROVAL_TIMEOUT_SEC, ...config }, env, {
    skills: skillChoices(() => config.disabled_skills ?? []),
    redactor: createRedactor(),
    log,
  });
  const settings = settingsSource({ file: config, overrides: [], profile: undefined, env });
  const asks = config.approval_policy === undefined ? "never" : undefined;
  return new OpenHeddle({ home, engine, settings, asks, workspace: path.resolve(options.workspace ?? process.cwd()) });
}

interface Opened {
  readonly home: string;
  readonly engine: Engine;
  readonly settings: SettingsSource;
  /** What a turn that says nothing runs with; undefined: what the configuration says. */
  readonly asks: "never" | undefined;
  readonly workspace: string;
}

class OpenHeddle implements Heddle {
  readonly home: string;
  readonly #opened: Opened;
  /** Ends what is still being read when the record closes. */
  readonly #reading = new AbortController();
  #closing: Promise<void> | undefined;

  constructor(opened: Opened) {
    this.home = opened.home;
    this.#opened = opened;
  }

  async startTurn({ thread, onDelta, signal, ...given }: StartTurn): Promise<Turn> {
    this.#requireOpen();
    signal?.throwIfAborted();
    const { engine } = this.#opened;
    const asked = parseTurn(given);
    const known = thread === undefined ? undefined : await engine.findThread(thread);
    const folder = asked.workspace ?? (known === undefined ? this.#opened.workspace : undefined);
    const workspace = folder === undefined ? undefined : await requireFolder(path.resolve(folder), "workspace ");
    const settings = await this.#settingsFor(asked, known?.id, workspace ?? known?.workspace);
    const handle = await engine.startTurn({
      thread: known?.id ?? { workspace: workspace ?? this.#opened.workspace, origin: ORIGIN },
      ...(known === undefined || workspace === undefined ? {} : { workspace }),
      input: asked.input,
      settings,
      ...(asked.clientId === undefined ? {} : { clientId: asked.clientId }),
    });
    return openTurn({ engine, handle, onDelta, signal });
  }

  async *events(
    threadId: string,
    { after = 0, live = false, signal }: EventsOptions = {},
  ): ReturnType<Heddle["events"]> {
    this.#requireOpen();
    const { journal } = this.#opened.engine;
    const { id } = await this.#opened.engine.findThread(threadId);
    const last = live ? Number.POSITIVE_INFINITY : await journal.version(id);
    if (after >= last) return;
    const ends = AbortSignal.any([this.#reading.signal, ...(signal === undefined ? [] : [signal])]);
    for await (const event of journal.tail({ stream: id, after, signal: ends })) {
      yield streamedEvent(event);
      if (event.version >= last) return;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#reading.abort();
    await this.#opened.engine[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new HeddleError("usage.invalid", "this engine is closed; open another one");
  }

  /** What is not said is as in the thread's last turn. */
  async #settingsFor(
    asked: z.output<typeof StartTurnBody>,
    threadId: string | undefined,
    workspace: string | undefined,
  ): Promise<TurnSettings> {
    const { engine, settings, asks } = this.#opened;
    const { model, provider, effort, sandboxMode, approvalPolicy = asks, mode, outputSchema, limits } = asked;
    const inherited = threadId === undefined ? undefined : await engine.lastSettings(threadId);
    const resolved = await settings.resolve({
      workspace,
      model,
      provider,
      effort,
      sandboxMode,
      approvalPolicy,
      inherited,
    });
    const { mode: before, ...rest } = resolved;
    return {
      ...rest,
      ...((mode ?? before) === "plan" ? { mode: "plan" } : {}),
      ...(outputSchema === undefined ? {} : { outputSchema }),
      ...(limits === undefined ? {} : { limits }),
    };
  }
}

function parseTurn(given: StartTurnInput): z.output<typeof StartTurnBody> {
  const parsed = StartTurnBody.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") ?? "";
  const where = field === "" ? "" : ` at ${field}`;
  throw new HeddleError("usage.invalid", `startTurn: the turn is not valid${where}: ${issue?.message ?? ""}`, {
    details: { field },
  });
}
