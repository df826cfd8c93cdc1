/**
 * `heddle demo`: a small repository with a failing test, as a task. The agent claims what it has not done and is refuted by
 * the checks, then does it and is verified. The model is scripted unless `--live` is given, and the demo says so; the loop,
 * the tools, the sandbox, the harness, the checks and the record are the real ones.
 */
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openHeddle, type Heddle } from "@heddle/agent";
import { BUILT_IN_PROVIDERS, type ProviderConfig } from "@heddle/models";
import {
  EXIT,
  HeddleError,
  OWNER,
  visibleLine,
  type SandboxLevel,
  type TaskRecord,
  type TurnSettings,
} from "@heddle/protocol";
import { openHarness, openTasks, readSpec } from "@heddle/tasks";
import { probeSandbox } from "@heddle/tools";
import { allEvents } from "@heddle/runtime/record";
import { resolveSettings } from "@heddle/runtime/settings";
import type { OptionSpec, ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { DEMO_SCRIPT } from "../demo/script.ts";
import { demoTask, makeWorkspace } from "../demo/workspace.ts";
import type { Output } from "../print/output.ts";
import { marked, openScreen } from "../print/screen.ts";
import { styleFor } from "../print/style.ts";
import { watchForStop, type Stop } from "../stop.ts";
import { diffLines } from "../tasks/diff.ts";
import { exitCodeOfTask, standing } from "../tasks/outcome.ts";
import { showTasks } from "../tasks/show-tasks.ts";

const OPTIONS: readonly OptionSpec[] = [
  { name: "live", help: "Ask a real model instead of the script; needs the key of a provider" },
  { name: "model", short: "m", value: "MODEL", help: "The model for --live" },
];

export const demoCommand: Command = {
  usage: "demo [--live [--model MODEL]]",
  about:
    "Makes a small repository with a failing test and a task to fix it. The agent claims that it is done and is not, is\n" +
    "rejected by the checks that Heddle runs itself, fixes it and is verified. Everything stays in one temporary folder.",
  options: OPTIONS,
  examples: ["heddle demo", "OPENAI_API_KEY=... heddle demo --live", "ANTHROPIC_API_KEY=... heddle demo --live"],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const startedAt = performance.now();
  const out = openScreen(process.stdout);
  using stop = watchForStop(undefined);
  const chosen = await choose(args, context);
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-demo-"));
  const workspace = path.join(folder, "workspace");
  const home = path.join(folder, "home");
  await mkdir(workspace);
  await makeWorkspace(workspace);
  const { namespaces, bwrap } = await probeSandbox(workspace);
  const hasSandbox = namespaces.ok || bwrap.ok;
  await out.write(introduction(chosen, hasSandbox ? CONFINED : withoutSandbox(namespaces.reason, bwrap.reason)));
  // Its own script runs without a sandbox where the host has none; a real model never does.
  const sandbox = hasSandbox || chosen.isLive ? "workspace-write" : "danger-full-access";
  const worked = await work({ ...chosen, home, workspace, sandbox }, context, { stop, out });
  await out.write(`\nWhat the task changed:\n\n${worked.diff.join("\n")}\n\n`);
  await out.write(summary({ ...worked, home, startedAt, isLive: chosen.isLive }));
  return stop.exitCode ?? (worked.task.state === "verified" ? EXIT.ok : exitCodeOfTask(worked.task) || EXIT.turnFailed);
}

interface Chosen {
  readonly providers: readonly ProviderConfig[];
  readonly settings: TurnSettings;
  readonly isLive: boolean;
}

async function choose(args: ParsedArgs, { env }: CommandContext): Promise<Chosen> {
  if (args.has("live")) {
    const layers = { file: { model_provider: liveProvider(env) }, overrides: {} };
    const choices = { model: args.value("model"), sandboxMode: "workspace-write", addedRoots: [] } as const;
    return { ...(await resolveSettings(layers, choices, env)), isLive: true };
  }
  return {
    // The script uses the names that OpenAI's models know.
    providers: [{ id: "scripted", family: "openai", script: DEMO_SCRIPT }],
    settings: {
      provider: "scripted",
      model: "scripted",
      sandboxMode: "workspace-write",
      networkAccess: false,
      writableRoots: [],
      approvalPolicy: "never",
    },
    isLive: false,
  };
}

/** The first provider whose key is set; a choice the user can see and undo, never a guess behind the back. */
function liveProvider(env: NodeJS.ProcessEnv): string {
  const withKeys = BUILT_IN_PROVIDERS.filter(({ envKey }) => envKey !== undefined);
  const found = withKeys.find(({ envKey }) => [envKey ?? []].flat().some((name) => (env[name] ?? "") !== ""));
  if (found !== undefined) return found.id;
  const names = withKeys.flatMap(({ envKey }) => [envKey ?? []].flat()).join(", ");
  throw new HeddleError("auth.missing", `--live needs a key; set one of ${names}, or leave --live out`);
}

const CONFINED = "Commands and checks run in the kernel sandbox: no network, writes only in the workspace.";

function withoutSandbox(namespaces: string | undefined, bwrap: string | undefined): string {
  return [
    "!! NO KERNEL SANDBOX on this machine:",
    `!!   namespaces: ${namespaces}`,
    `!!   bubblewrap: ${bwrap}`,
    "!! The demo plays its own known script without one. Nothing else in Heddle runs without one by itself: heddle exec refuses.",
  ].join("\n");
}

function introduction({ settings, isLive }: Chosen, sandbox: string): string {
  const model = isLive
    ? `The model is real: ${settings.model} of ${settings.provider}. It is asked over the network and costs tokens.`
    : "The model is SCRIPTED: it plays a fixed agent that claims too much, and no provider is asked. --live uses a real one.";
  return `Heddle demo: a task is done when its checks say so.\n${model}\n${sandbox}\n\n`;
}

interface Work extends Chosen {
  readonly home: string;
  readonly workspace: string;
  readonly sandbox: TurnSettings["sandboxMode"];
}

interface Worked {
  readonly task: TaskRecord;
  readonly diff: readonly string[];
  readonly sandboxLevel: SandboxLevel | undefined;
}

async function work(
  { home, workspace, providers, settings, sandbox }: Work,
  { env }: CommandContext,
  { stop, out }: { readonly stop: Stop; readonly out: Output },
): Promise<Worked> {
  await using heddle = await openHeddle({ home, providers, env, isUnattended: true });
  const [spec] = readSpec({ file: "demo.yaml", text: demoTask(sandbox), folder: workspace }).specs;
  if (spec === undefined) throw new HeddleError("internal", "the demo has no task");
  const tasks = openTasks({ journal: heddle.journal, home }).as(OWNER);
  const task = await tasks.add({ spec, source: { kind: "cli", ref: "demo" } });
  const style = styleFor("auto", out.isTerminal, env);
  const { journal } = heddle;
  const show = showTasks({ journal, from: 0, chosen: [task], out, style, isJson: false, hasItems: true });
  const settingsFor = (): TurnSettings => ({ ...settings, sandboxMode: sandbox });
  await using harness = await openHarness({ heddle, settingsFor, home, concurrency: 1 });
  const [ended = task] = await harness.drained([task.id], stop.signal);
  await harness[Symbol.asyncDispose]();
  await show.end();
  const diff = diffLines(task.id, await tasks.diff(task.id, { isStat: false, signal: stop.signal }), style);
  return { task: ended, diff, sandboxLevel: await sandboxLevelOf(heddle, ended) };
}

async function sandboxLevelOf({ journal }: Heddle, { threadId }: TaskRecord): Promise<SandboxLevel | undefined> {
  if (threadId === undefined) return undefined;
  for await (const { body } of allEvents(journal, threadId)) if (body.type === "turn.started") return body.sandboxLevel;
  return undefined;
}

const VERIFIED =
  "VERIFIED: the test that failed before passes now, it is the same test, and Heddle ran it itself. The first claim was rejected.";

function summary(
  end: Worked & { readonly home: string; readonly startedAt: number; readonly isLive: boolean },
): string {
  const { task, home } = end;
  const { spent } = task;
  const seconds = ((performance.now() - end.startedAt) / 1000).toFixed(1);
  const prefix = `HEDDLE_HOME=${home} npx heddle`;
  const tokens = `${spent.tokens} tokens${end.isLive ? "" : " by the script's own count, none bought"}`;
  return [
    marked(task.state === "verified" ? VERIFIED : `NOT VERIFIED: ${task.state}, ${visibleLine(standing(task))}.`),
    `Turns ${spent.turns}, ${spent.nudges} of them started by the harness because checks did not pass. Demo ${seconds} s, ${tokens}, sandbox: ${end.sandboxLevel ?? "none"}.`,
    "",
    "Look at it:",
    `  ${prefix} task show ${task.id}`,
    `  ${prefix} task log ${task.id}`,
    ...(task.threadId === undefined ? [] : [`  ${prefix} threads show ${task.threadId}`]),
    `  ${prefix} verify`,
    "On its page: the first command in a terminal of its own, the second opens the page, logged in.",
    `  ${prefix} serve`,
    `  ${prefix} dashboard`,
    'Make one of your own: heddle task init "what is to be done"',
    "",
  ].join("\n");
}
