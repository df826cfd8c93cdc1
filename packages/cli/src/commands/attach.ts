/** `heddle attach`: a person takes a thread over in its agent's own interface, and gives it back when that ends. */
import { awaitTerminal, findThread, openHeddle, type Heddle, type TerminalEvent, type TurnHandle } from "@heddle/agent";
import { isOfOwnLoop, requireTakeover } from "@heddle/agent/takeover";
import { createRedactor, type ThreadRow } from "@heddle/journal";
import { ApprovalPolicy, defined, EXIT, HeddleError, isHeddleError, OWNER, SandboxMode } from "@heddle/protocol";
import { heddleHome, loadConfig, readConfiguration, storeAddress } from "@heddle/runtime/config";
import { knownSecrets } from "@heddle/runtime/known-secrets";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { exitCodeOfTurn } from "../exec/exit-code.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen, say } from "../print/screen.ts";
import { byHand } from "../print/takeover.ts";
import { watchForStop } from "../stop.ts";
import { requireRecord } from "./threads.ts";

/** A turn ends within seconds of being told to. */
const STOP_MS = 15_000;
const EXIT_BY_SIGNAL = { SIGTERM: EXIT.terminated, SIGHUP: 129 } as const;

export const attachCommand: Command = {
  usage: "attach ID [--wait | --live | --print]",
  about:
    "Takes a thread over: its agent's own interface (codex resume, claude --resume and the like) gets the terminal, in the\n" +
    "thread's folder and outside the sandbox, as when you start it yourself. A turn that runs is interrupted first. No\n" +
    "other client can use the thread meanwhile; when the program has ended, what was said and done there becomes items of\n" +
    "a turn of its own. A thread of Heddle's own loop has no such program: what you type is its next input, its items are\n" +
    "printed as they come, questions are answered with y, n or a, Ctrl-C interrupts the turn, and Ctrl-D leaves.\n" +
    "ID is an id, its first 8 characters or more, or a name.",
  options: [
    { name: "wait", help: "Wait for the end of a turn that runs, instead of interrupting it" },
    {
      name: "live",
      help: "Join the turn that runs, which continues: OpenCode in its own interface, Heddle's own loop here",
    },
    { name: "print", help: "Only print the command to run by hand; Heddle records nothing of what is done then" },
    {
      name: "ask-for-approval",
      short: "a",
      value: "POLICY",
      choices: ApprovalPolicy.options,
      help: "When you are asked in a thread of Heddle's own loop (default: approval_policy of config.toml, or on-request)",
    },
    {
      name: "sandbox",
      short: "s",
      value: "MODE",
      choices: SandboxMode.options,
      help: "What it may change from here on (default: as before)",
    },
    { name: "json", help: "The same as JSON: the command by its arguments, and its folder" },
  ],
  examples: [
    "heddle attach 01a1ddef",
    "heddle attach 01a1ddef --wait",
    "heddle attach 01a1ddef --live",
    "heddle attach 01a1ddef --print",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const { env } = context;
  const [id, ...more] = args.positionals;
  if (id === undefined || more.length > 0) throw usage("write heddle attach ID; heddle threads list shows them");
  const isPrinted = args.has("print") || args.has("json");
  for (const name of ["wait", "live"])
    if (isPrinted && args.has(name)) throw usage(`--${name} belongs to heddle attach without --print and --json`);
  const isLive = args.has("live");
  if (isLive && args.has("wait")) throw usage("--live joins what runs, and --wait waits for its end; leave out one");
  // To see that there is something to take over; nothing is made where nothing is.
  if (!isPrinted && (await isHere(env, id))) return await here(args, context, id);
  const { config } = await loadConfig(env);
  const redactor = createRedactor(await knownSecrets(env));
  const { runners, ceiling } = config;
  await using heddle = await openHeddle({
    home: heddleHome(env),
    store: storeAddress(config, env),
    providers: [],
    env,
    redactor,
    runners,
    isUnattended: true,
  });
  const thread = await heddle.findThread(id);
  if (isLive) {
    requireTerminal(`heddle threads show ${thread.id} shows what runs`);
    const { joinLive } = await import("../attach/join-live.ts");
    return await joinLive({ heddle, thread, home: heddleHome(env), config, env });
  }
  const takeover = await requireTakeover(heddle.journal, thread.id);
  if (isPrinted) {
    await requireIdle(heddle, thread);
    const out = openScreen(process.stdout, { isRaw: args.has("json") });
    await out.write(args.has("json") ? toLine(takeover) : `${byHand(takeover)}\n`);
    return EXIT.ok;
  }
  requireTerminal(`heddle attach ${thread.id} --print prints the command to run in one`);
  await stopRunning(heddle, thread, args.has("wait"));
  const turn = await heddle.as(OWNER).attach({ threadId: thread.id, terminal: [0, 1, 2], ceiling });
  return await withTerminal(heddle, turn);
}

/** Whether its agent has no program: it is continued at this terminal. */
async function isHere(env: NodeJS.ProcessEnv, id: string): Promise<boolean> {
  await using journal = await requireRecord(env, id);
  return await isOfOwnLoop(journal, (await findThread(journal, id)).id);
}

/** A person is there to be asked, also where the thread was begun without one. */
const UNLESS_SAID = "on-request";

/** Ending a turn takes some seconds; then the process ends, whatever hangs. */
const END_MS = 9_500;

async function here(args: ParsedArgs, { env, version }: CommandContext, id: string): Promise<number> {
  requireTerminal(`heddle exec resume ${id} "…" continues the thread without one`);
  const [{ openServing }, { attachHere }] = await Promise.all([
    import("@heddle/runtime/serving"),
    import("../attach/attach-here.ts"),
  ]);
  using stop = watchForStop(undefined, END_MS);
  const configuration = await readConfiguration({}, env);
  await using ends = new AsyncDisposableStack();
  const { heddle, settings } = await openServing(ends, { configuration, home: heddleHome(env), env, log: say });
  const thread = await heddle.findThread(id);
  if (!args.has("live")) await stopRunning(heddle, thread, args.has("wait"));
  const approval_policy = args.value("ask-for-approval") ?? configuration.config.approval_policy ?? UNLESS_SAID;
  const patch = settings.patchOf({ approval_policy, ...defined({ sandbox_mode: args.value("sandbox") }) });
  await attachHere({ heddle, settings, thread, env, version, stop, patch });
  await ends.disposeAsync();
  return stop.exitCode ?? EXIT.ok;
}

function requireTerminal(instead: string): void {
  if (process.stdin.isTTY && process.stdout.isTTY) return;
  throw usage(`heddle attach needs a terminal; ${instead}`);
}

/** Two programs that continue one conversation lose what one of them does. */
async function requireIdle({ journal }: Heddle, thread: ThreadRow): Promise<void> {
  const last = await journal.threads.lastTurn(thread.id);
  if (last?.status !== "open") return;
  const message = `turn ${last.id} runs in this thread; without --print, heddle attach ${thread.id} interrupts it first, and --live joins it where its agent allows that`;
  throw new HeddleError("turn.active", message);
}

async function stopRunning(heddle: Heddle, { id }: ThreadRow, waits: boolean): Promise<void> {
  const { journal } = heddle;
  const last = await journal.threads.lastTurn(id);
  if (last?.status !== "open") return;
  const [admitted] = await journal.read({ stream: id, after: last.admittedVersion - 1, limit: 1 });
  if (admitted?.body.type === "turn.admitted" && admitted.body.task === "attached")
    throw new HeddleError("turn.active", `a person has taken thread ${id} over, in turn ${last.id}`);
  say(`turn ${last.id} runs; ${waits ? "waiting for its end" : "it is interrupted"}`);
  if (!waits) {
    const message = "its owner takes the thread over";
    await heddle.as(OWNER).interrupt(last.id, { code: "turn.interrupted", message }).catch(unlessEnded);
  }
  const signal = waits ? new AbortController().signal : AbortSignal.timeout(STOP_MS);
  try {
    await awaitTerminal(journal, id, last.id, last.admittedVersion, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    const message = `turn ${last.id} did not end within ${STOP_MS / 1000} s of being interrupted`;
    throw new HeddleError("turn.active", message, { cause: error });
  }
}

function unlessEnded(error: unknown): void {
  if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
}

/** What is typed to interrupt is for the program; who ends this process ends the program with it. */
async function withTerminal(heddle: Heddle, { turnId, threadId, done }: TurnHandle): Promise<number> {
  let exitCode: number | undefined;
  const leave = (): void => undefined;
  const stop = (name: keyof typeof EXIT_BY_SIGNAL): void => {
    exitCode = EXIT_BY_SIGNAL[name];
    const reason = { code: "turn.interrupted", message: `interrupted by ${name}` } as const;
    heddle.as(OWNER).interrupt(turnId, reason).catch(leave);
  };
  process.on("SIGINT", leave).on("SIGQUIT", leave).on("SIGTERM", stop).on("SIGHUP", stop);
  let terminal: TerminalEvent;
  try {
    terminal = await done;
  } finally {
    process.off("SIGINT", leave).off("SIGQUIT", leave);
  }
  const { status, failure } = terminal.body;
  if (status === "completed") say(`Heddle has the thread again; heddle exec resume ${threadId} "…" continues it`);
  if (failure !== undefined) say(failure.message);
  return exitCodeOfTurn(terminal, { exitCode });
}
