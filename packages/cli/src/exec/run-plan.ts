/** A plan carried out: the record is opened, the thread found or made, one turn run and followed to its terminal event. */
import { stat } from "node:fs/promises";
import path from "node:path";
import {
  isThreadId,
  openHeddle,
  type HeddleOptions,
  type StartWatch,
  type Heddle,
  type StartTurn,
  type TerminalEvent,
  type ThreadSelector,
  type TurnHandle,
} from "@heddle/agent";
import {
  counted,
  HeddleError,
  NO_USAGE,
  OWNER,
  reasonOf,
  toHeddleError,
  type TurnSettings,
  type Usage,
} from "@heddle/protocol";
import {
  limitOptions,
  providerConfigs,
  requireStanding,
  resolveSettings,
  skillChoices,
  standingOf,
  withLazyLogins,
} from "@heddle/runtime/settings";
import { storeAddress } from "@heddle/runtime/config";
import { traceTurns } from "@heddle/runtime/telemetry";
import type { ParsedArgs } from "../args.ts";
import type { Batch } from "../batch/batch.ts";
import type { CommandContext } from "../command.ts";
import { followTurn, type Followed } from "../follow.ts";
import { createJsonlPrinter, toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import type { Printer } from "../print/output.ts";
import { showProgress } from "../print/progress.ts";
import { behind, quoted, say } from "../print/screen.ts";
import { styleFor } from "../print/style.ts";
import type { Stop } from "../stop.ts";
import { isForCodex } from "./caller.ts";
import type { Plan } from "./plan.ts";

export interface RunSurface {
  readonly args: ParsedArgs;
  readonly context: CommandContext;
  readonly out: Output;
  readonly err: Output;
  readonly stop: Stop;
  /** Set for a batch run. */
  readonly batch?: Batch | undefined;
  /** Since the process began, until the first request. */
  readonly watch: StartWatch;
}

/** How a run ended. */
export interface RunEnd {
  readonly threadId: string;
  /** undefined: a thread was forked and nothing was asked of it. */
  readonly terminal: TerminalEvent | undefined;
  /** The final message of a turn that completed. */
  readonly lastMessage: string | undefined;
  /** The turn has its end; what was to be made of it could not be. */
  readonly failure: HeddleError | undefined;
}

export async function runPlan(plan: Plan, surface: RunSurface): Promise<RunEnd> {
  const { args, context, out, err, stop } = surface;
  const { watch } = surface;
  watch.step("open the record");
  await refuseWithoutRecord(plan, context.env);
  const providers =
    plan.resolved?.providers ?? withLazyLogins(providerConfigs(plan.config, plan.choices, context.env), context.env);
  await using heddle = await openEngine(plan, { env: context.env, providers, masked: surface.batch?.masked ?? [] });
  await using ends = new AsyncDisposableStack();
  await traceTurns(ends, { journal: heddle.journal, config: plan.config, env: context.env, log: say });
  const notice = (text: string): Promise<void> => err.write(`heddle: ${behind(text)}\n`);
  if (heddle.recoveredTurns > 0)
    await notice(
      `${counted(heddle.recoveredTurns, "turn")} of processes that have ended ${heddle.recoveredTurns === 1 ? "was" : "were"} closed`,
    );
  const { scriptFile } = plan.choices;
  if (args.has("json") && scriptFile !== undefined) await notice(`the script ${scriptFile} is run, no model is used`);
  stop.signal.throwIfAborted();
  watch.step("find the thread");
  const target = await findTarget(heddle, plan, notice);
  if (plan.input === undefined) return await forkOnly(heddle, target, { out, isJson: args.has("json") });

  const resolved = await settingsFor(heddle, plan, target, context.env);
  // The result file of a batch run says whether its answer fits.
  const isAnswerUnchecked =
    isForCodex(context.env) && resolved.outputSchema !== undefined && surface.batch === undefined;
  const settings: TurnSettings = isAnswerUnchecked ? { ...resolved, isAnswerUnchecked } : resolved;
  if (settings.sandboxMode === "read-only" && plan.choices.addedRoots.length > 0) {
    await notice("--add-dir changes nothing while the sandbox is read-only; add -s workspace-write");
  }
  const printer = await createPrinter(surface, plan, target);
  stop.signal.throwIfAborted();
  const start: StartTurn = {
    thread: target.thread,
    workspace: target.workspace,
    input: plan.input,
    settings,
    notices: plan.notices,
    watch,
    ...(plan.choices.ceiling === undefined ? {} : { keep: { ceiling: plan.choices.ceiling } }),
    ...(plan.agentName === undefined ? {} : { agentName: plan.agentName }),
    ...(plan.isReview ? { task: "review" } : {}),
  };
  const threads = new Set<string>();
  const onThread = (threadId: string): void => void threads.add(threadId);
  try {
    const { handle, terminal, message } =
      surface.batch === undefined
        ? await runOnce(heddle, start, { printer, stop, onThread })
        : await surface.batch.run(heddle, {
            start,
            workspace: target.workspace,
            agentRoots: plan.agentRoots,
            home: plan.home,
            providers,
            servers: plan.mcpServers.map(({ name }) => name),
            printer,
            onThread,
          });
    // What was said before a turn broke off is in the record; it is not the answer.
    const lastMessage = terminal.body.status === "completed" ? message : undefined;
    const failure = await deliver(lastMessage, { plan, surface, printer }).then(
      () => undefined,
      (error: unknown) => toHeddleError(error),
    );
    return { threadId: handle.threadId, terminal, lastMessage, failure };
  } finally {
    if (plan.isEphemeral) for (const threadId of threads) await forget(heddle, threadId, printer);
  }
}

function openEngine(
  plan: Plan,
  { env, providers, masked }: Required<Pick<HeddleOptions, "env" | "providers" | "masked">>,
): Promise<Heddle> {
  return openHeddle({
    home: plan.home,
    store: storeAddress(plan.config, env),
    codexHome: plan.layers.codexHome,
    providers,
    env,
    isUnattended: true,
    mcpServers: plan.mcpServers,
    hooks: plan.hooks,
    runners: plan.config.runners,
    hasEvidenceTools: plan.config.evidence_tools,
    skills: skillChoices(() => plan.config.disabled_skills ?? []),
    ...limitOptions(plan.config),
    masked,
  });
}

async function runOnce(
  heddle: Heddle,
  start: StartTurn,
  { printer, stop, onThread }: { printer: Printer; stop: Stop; onThread: (threadId: string) => void },
): Promise<Followed & { readonly handle: TurnHandle }> {
  const handle = await heddle.as(OWNER).startTurn(start);
  onThread(handle.threadId);
  return { handle, ...(await followTurn(heddle, handle, { printer, stop })) };
}

/** Nothing is made where there is nothing to go on with. */
async function refuseWithoutRecord({ thread, home, config }: Plan, env: NodeJS.ProcessEnv): Promise<void> {
  if (thread.kind === "new" || storeAddress(config, env) !== undefined) return;
  const found = await stat(path.join(home, "heddle.db")).catch(() => undefined);
  if (found === undefined) {
    const wanted = "selector" in thread && isThreadId(thread.selector) ? thread.selector : undefined;
    const what = wanted === undefined ? "" : `no rollout found for thread id ${wanted}: `;
    throw new HeddleError("thread.not-found", `${what}there are no threads in ${home} yet; heddle exec "…" makes one`);
  }
}

interface Target {
  readonly thread: StartTurn["thread"];
  readonly workspace: string;
  /** The thread it continues or is forked from. */
  readonly basedOn: string | undefined;
  readonly usageBefore: Usage;
}

async function findTarget(heddle: Heddle, plan: Plan, notice: (text: string) => Promise<void>): Promise<Target> {
  const { thread, workspace, origin } = plan;
  const ephemeral = plan.isEphemeral ? { isEphemeral: true as const } : {};
  if (thread.kind === "new") {
    return { thread: { workspace, origin, ...ephemeral }, workspace, basedOn: undefined, usageBefore: NO_USAGE };
  }
  const found = await heddle.findThread(selectorOf(plan));
  const basedOn = found.id;
  if (thread.kind === "fork") {
    const fork = { threadId: found.id, origin, workspace, ...ephemeral };
    return { thread: { fork }, workspace, basedOn, usageBefore: NO_USAGE };
  }
  if (found.workspace !== workspace)
    await notice(`the thread continues in ${workspace}; until now it was in ${found.workspace}`);
  return { thread: found.id, workspace, basedOn, usageBefore: found.usage };
}

function selectorOf({ thread, workspace }: Plan): ThreadSelector {
  if (thread.kind === "resume" || thread.kind === "fork") return thread.selector;
  const isEverywhere = thread.kind === "resumeLast" && thread.isEverywhere;
  return isEverywhere ? { last: true, all: true } : { last: true, workspace };
}

/** An older thread keeps its model unless another is named; its sandbox is chosen each time. */
async function settingsFor(heddle: Heddle, plan: Plan, target: Target, env: NodeJS.ProcessEnv): Promise<TurnSettings> {
  if (plan.resolved !== undefined) return plan.resolved.settings;
  const standing = await standingOf(target.workspace, plan.config.projects);
  if (!plan.mayBeOutsideGit) requireStanding(target.workspace, standing);
  const stored = target.basedOn === undefined ? undefined : await heddle.storedSettings(target.basedOn);
  const choices = { ...plan.choices, isTrustedFolder: standing.isTrusted, stored };
  return (await resolveSettings(plan.layers, choices, env)).settings;
}

async function forkOnly(
  heddle: Heddle,
  { thread }: Target,
  { out, isJson }: { readonly out: Output; readonly isJson: boolean },
): Promise<RunEnd> {
  if (typeof thread === "string" || !("fork" in thread)) throw new HeddleError("internal", "there is nothing to fork");
  const threadId = await heddle.as(OWNER).forkThread(thread.fork);
  await out.write(isJson ? toLine({ type: "thread.started", thread_id: threadId }) : `${threadId}\n`);
  return { threadId, terminal: undefined, lastMessage: undefined, failure: undefined };
}

async function createPrinter({ args, context, out, err }: RunSurface, plan: Plan, target: Target): Promise<Printer> {
  if (args.has("json")) {
    const shape = isForCodex(context.env)
      ? { shape: (await import("@heddle/dialects/exec-schema")).onlyCodexFields }
      : {};
    return createJsonlPrinter({ out, err, hasDeltas: args.has("deltas"), usageBefore: target.usageBefore, ...shape });
  }
  const color = args.value("color");
  const choice = color === "always" || color === "never" ? color : "auto";
  const progress = showProgress({ out: err, stream: process.stderr });
  const { createHumanPrinter } = await import("../print/human.ts");
  return createHumanPrinter({
    err: progress.out,
    progress,
    style: styleFor(choice, err.isTerminal, context.env),
    version: context.version,
    workspace: target.workspace,
    scriptFile: plan.choices.scriptFile,
    isKept: !plan.isEphemeral,
  });
}

async function deliver(
  lastMessage: string | undefined,
  run: { readonly plan: Plan; readonly surface: RunSurface; readonly printer: Printer },
): Promise<void> {
  const { args, out, err } = run.surface;
  const file = run.plan.lastMessageFile;
  if (!args.has("json") && !(out.isTerminal && err.isTerminal) && lastMessage !== undefined && lastMessage !== "") {
    // A program gets the bare answer.
    await out.write(`${out.isTerminal ? quoted(lastMessage).join("\n") : lastMessage}\n`);
  }
  if (file === undefined) return;
  const { writeLastMessage } = await import("../output-file.ts");
  await writeLastMessage(file, lastMessage ?? "");
  if (lastMessage === undefined) await run.printer.notice(`there is no final message; ${file.path} is empty`);
}

async function forget(heddle: Heddle, threadId: string, printer: Printer): Promise<void> {
  try {
    await heddle.as("system").deleteThread({ threadId, reason: "ephemeral" });
  } catch (error) {
    const why = reasonOf(error);
    await printer.notice(`the ephemeral thread ${threadId} could not be deleted: ${why}`);
  }
}
