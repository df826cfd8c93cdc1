/**
 * `heddle demo`: a small repository with a failing test, mended by Heddle's own loop, and then judged from what is on disk.
 * The model is scripted unless `--live` is given, and the demo says so; the loop, the tools, the sandbox and the record are
 * the real ones.
 */
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openHeddle } from "@heddle/agent";
import { BUILT_IN_PROVIDERS, type ProviderConfig } from "@heddle/models";
import { EXIT, HeddleError, visibleText, type SandboxLevel, type TurnSettings } from "@heddle/protocol";
import { probeSandbox } from "@heddle/tools";
import type { OptionSpec, ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { resolveSettings } from "../config/settings.ts";
import { runTests, workspaceDiff, type CheckOptions, type TestRun } from "../demo/check.ts";
import { DEMO_SCRIPT } from "../demo/script.ts";
import { makeWorkspace, PROMPT, TEST_FILE } from "../demo/workspace.ts";
import { followTurn } from "../follow.ts";
import { createHumanPrinter } from "../print/human.ts";
import { openOutput, type Output } from "../print/output.ts";
import { styleFor } from "../print/style.ts";
import { watchForStop, type Stop } from "../stop.ts";

const OPTIONS: readonly OptionSpec[] = [
  { name: "live", help: "Ask a real model instead of the script; needs the key of a provider" },
  { name: "model", short: "m", value: "MODEL", help: "The model for --live" },
];

export const demoCommand: Command = {
  usage: "demo [--live [--model MODEL]]",
  about:
    "Makes a small repository with a failing test, lets the agent mend it in the sandbox, then runs the test itself and\n" +
    "says verified or not verified from what is on disk. Everything stays in one temporary folder.",
  options: OPTIONS,
  examples: ["heddle demo", "OPENAI_API_KEY=... heddle demo --live", "ANTHROPIC_API_KEY=... heddle demo --live"],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const startedAt = performance.now();
  const out = openOutput(process.stdout);
  using stop = watchForStop(undefined);
  const chosen = await choose(args, context);
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-demo-"));
  const workspace = path.join(folder, "workspace");
  const home = path.join(folder, "home");
  await mkdir(workspace);
  await makeWorkspace(workspace);
  const check: CheckOptions = { workspace, home, env: context.env, signal: stop.signal };

  await out.write(introduction(chosen, await sandboxLine()));
  const before = await runTests(check);
  await out.write(`1. The test before: ${before.passes ? "passes" : `fails (exit ${before.exitCode})`}\n`);
  if (before.passes)
    throw new HeddleError("internal", `the demo's test passes before anything was mended: ${workspace}`);

  await out.write(`2. The agent works in ${workspace}\n\n`);
  const turn = await mend({ chosen, home, workspace }, context, stop, out);
  const after = await runTests(check);
  const verdict = judge(before, after, turn.status);
  await out.write(`\n3. Heddle runs the test itself: ${after.passes ? "passes" : `fails (exit ${after.exitCode})`}\n`);
  await out.write(`   ${TEST_FILE} is ${after.testFileHash === before.testFileHash ? "unchanged" : "CHANGED"}\n\n`);
  await out.write(`${indent(visibleText(await workspaceDiff(check)))}\n`);
  await out.write(summary({ verdict, turn, home, startedAt }));
  if (stop.exitCode !== undefined) return stop.exitCode;
  return verdict.isVerified ? EXIT.ok : EXIT.turnFailed;
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

async function sandboxLine(): Promise<string> {
  const { namespaces, bwrap } = await probeSandbox();
  if (namespaces.ok || bwrap.ok) return "Commands run in the kernel sandbox: no network, writes only in the workspace.";
  return [
    "!! NO KERNEL SANDBOX on this machine:",
    `!!   namespaces: ${namespaces.reason}`,
    `!!   bubblewrap: ${bwrap.reason}`,
    "!! The demo plays its own known script without one. Nothing else in Heddle ever does: heddle exec refuses.",
  ].join("\n");
}

function introduction({ settings, isLive }: Chosen, sandbox: string): string {
  const model = isLive
    ? `The model is real: ${settings.model} of ${settings.provider}. It is asked over the network and costs tokens.`
    : "The model is SCRIPTED: it plays a fixed repair and no provider is asked. --live uses a real one.";
  return `Heddle demo: mend a failing test, and prove it.\n${model}\n${sandbox}\n\n`;
}

interface Mended {
  readonly threadId: string;
  readonly status: string;
  readonly seconds: number;
  readonly tokens: string;
  readonly sandboxLevel: SandboxLevel | undefined;
}

async function mend(
  { chosen, home, workspace }: { readonly chosen: Chosen; readonly home: string; readonly workspace: string },
  { env, version }: CommandContext,
  stop: Stop,
  out: Output,
): Promise<Mended> {
  await using heddle = await openHeddle({
    home,
    providers: chosen.providers,
    env,
    isUnattended: true,
    scriptMayGoUnconfined: !chosen.isLive,
  });
  const handle = await heddle.startTurn({
    thread: { workspace, origin: "demo" },
    input: [{ type: "text", text: PROMPT }],
    settings: chosen.settings,
  });
  const printer = createHumanPrinter({
    err: out,
    style: styleFor("auto", out.isTerminal, env),
    version,
    workspace,
    scriptFile: undefined,
  });
  const { terminal, sandboxLevel } = await followTurn(heddle, handle, { printer, stop });
  const { status, durationMs, usage } = terminal.body;
  return {
    threadId: handle.threadId,
    status,
    seconds: durationMs / 1000,
    tokens: `${usage.inputTokens + usage.outputTokens} tokens${chosen.isLive ? "" : " by the script's own count, none bought"}`,
    sandboxLevel,
  };
}

interface Verdict {
  readonly isVerified: boolean;
  readonly reason: string;
}

/** From the disk alone: the same test that failed before passes now. What the agent said is not looked at. */
function judge(before: TestRun, after: TestRun, status: string): Verdict {
  if (after.testFileHash !== before.testFileHash) return { isVerified: false, reason: "the test itself was changed" };
  if (!after.passes) return { isVerified: false, reason: `the test still fails (turn ${status})` };
  return { isVerified: true, reason: "the test that failed before passes now, and it is the same test" };
}

function summary(end: {
  readonly verdict: Verdict;
  readonly turn: Mended;
  readonly home: string;
  readonly startedAt: number;
}): string {
  const { verdict, turn, home } = end;
  const seconds = ((performance.now() - end.startedAt) / 1000).toFixed(1);
  const prefix = `HEDDLE_HOME=${home} npx heddle`;
  return [
    `${verdict.isVerified ? "VERIFIED" : "NOT VERIFIED"}: ${verdict.reason}.`,
    `Turn ${turn.seconds.toFixed(1)} s, demo ${seconds} s, ${turn.tokens}, sandbox: ${turn.sandboxLevel ?? "none"}.`,
    "",
    "Look at the record:",
    `  ${prefix} threads show ${turn.threadId}`,
    `  ${prefix} verify`,
    "",
  ].join("\n");
}

function indent(text: string): string {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => `   ${line}`)
    .join("\n");
}
