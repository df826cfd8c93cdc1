/**
 * `--preflight`: would this run start? The same steps as a run, in the same order, up to the first model request, which is not
 * made; nothing is written. The exit code is the one the run would have been refused with.
 */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import path from "node:path";
import { checkLimits, instructionsFor, loadGuides, turnEnvelope } from "@heddle/agent";
import { modelInfo } from "@heddle/models";
import {
  EXIT,
  exitCodeOf,
  HeddleError,
  isHeddleError,
  toHeddleError,
  visibleText,
  type ErrorCode,
  type TurnSettings,
} from "@heddle/protocol";
import { openSandbox } from "@heddle/tools";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { asCodexExitCode } from "../exec/exit-code.ts";
import { makePlan, type Plan } from "../exec/plan.ts";
import { timeLimitMs } from "../stop.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { instructionSources, sourceOf, sourcesText, type InstructionSource } from "../print/instruction-sources.ts";
import { watchForStop, type Stop } from "../stop.ts";
import { allowedTools } from "./allowed-tools.ts";
import { checkArtifactRoot } from "./artifacts.ts";
import { parseBatchFlags } from "./flags.ts";
import { gitState } from "./git-state.ts";
import { readManifest } from "../input-file.ts";
import { holdResultFile, rootsOf } from "./flags.ts";

interface Check {
  readonly name: string;
  readonly state: "ok" | "failed" | "skipped";
  readonly detail: string;
  readonly code?: ErrorCode;
  /** Of the instructions. */
  readonly sources?: readonly InstructionSource[];
}

const GIT_MS = 10_000;

export async function preflight(args: ParsedArgs, context: CommandContext): Promise<number> {
  using stop = watchForStop(timeLimitMs(args));
  const options = await checked("options", () => checkOptions(args, context));
  const checks: Check[] = [options];
  const planned = await planChecks(args, context, stop);
  checks.push(...planned.checks);
  if (planned.plan !== undefined && options.state === "ok")
    checks.push(...(await planFollowers(planned.plan, args, context, stop)));
  const failed = checks.find(({ state }) => state === "failed");
  const exitCode = failed === undefined ? EXIT.ok : exitCodeOf(failed.code ?? "internal");
  const code = args.has("codex-exit-codes") ? asCodexExitCode(exitCode, args) : exitCode;
  const out = openOutput(process.stdout);
  if (args.has("json")) {
    const answer = { type: "heddle.preflight", version: 1, ok: failed === undefined, exit_code: code, checks };
    await out.write(toLine(answer));
  } else {
    const lines = checks.map(({ state, name, detail }) => `${state.padEnd(7)}  ${name.padEnd(12)}  ${detail}\n`);
    await out.write(visibleText(lines.join("")));
  }
  return code;
}

async function checked(name: string, check: () => Promise<string> | string): Promise<Check> {
  try {
    return { name, state: "ok", detail: await check() };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    return { name, state: "failed", detail: error.message, code: error.code };
  }
}

async function checkOptions(args: ParsedArgs, context: CommandContext): Promise<string> {
  const { cwd } = context;
  (await holdResultFile(args, context, rootsOf(args, cwd)))?.[Symbol.dispose]();
  const { artifactRoot, runId, manifestFile } = parseBatchFlags(args, cwd);
  if (manifestFile !== undefined) await readManifest(manifestFile);
  if (artifactRoot !== undefined) checkArtifactRoot(artifactRoot, runId);
  return "understood";
}

/** What a refusal of the plan is about, by its code. */
const SUBJECTS: readonly (readonly [name: string, codes: RegExp])[] = [
  ["config", /^config\./],
  ["workspace", /^workspace\./],
  ["model", /^(model\.|provider\.(unknown|disabled|configuration))/],
  ["key", /^(auth|credentials)\./],
  ["inputs", /./],
];

async function planChecks(
  args: ParsedArgs,
  context: CommandContext,
  stop: Stop,
): Promise<{ readonly checks: readonly Check[]; readonly plan: Plan | undefined }> {
  try {
    const plan = await makePlan(withPrompt(args), context, { err: openOutput(process.stderr), stop });
    return { plan, checks: SUBJECTS.map(([name]) => ({ name, state: "ok", detail: describe(name, plan) })) };
  } catch (error) {
    const { code, message } = toHeddleError(error);
    if (!isHeddleError(error)) throw error;
    const subject = SUBJECTS.find(([, codes]) => codes.test(code))?.[0] ?? "inputs";
    const checks = SUBJECTS.map(([name]): Check =>
      name === subject
        ? { name, state: "failed", detail: message, code }
        : { name, state: "skipped", detail: "the plan was refused" },
    );
    return { plan: undefined, checks };
  }
}

/** Whether a run could start does not depend on what it is asked; without a prompt a word stands in for it. */
function withPrompt(args: ParsedArgs): ParsedArgs {
  if (args.positionals.length > 0 || args.has("prompt-file")) return args;
  return { ...args, positionals: ["preflight"], positionalsBeforeDashes: 0 };
}

function describe(name: string, { workspace, resolved, thread }: Plan): string {
  switch (name) {
    case "workspace":
      return workspace;
    case "model":
      if (resolved === undefined) return `that of the thread (${thread.kind})`;
      return `${resolved.settings.model} of ${resolved.settings.provider}${resolved.provider === undefined ? "" : ` over ${resolved.provider.wire}`}`;
    case "key":
      return resolved === undefined ? "not known before the thread is opened" : "present, or not needed";
    default:
      return "understood";
  }
}

async function planFollowers(
  plan: Plan,
  args: ParsedArgs,
  context: CommandContext,
  stop: Stop,
): Promise<readonly Check[]> {
  const { resolved, home } = plan;
  const limits = await checked("limits", () => checkChoices(plan, args, context.cwd));
  return [
    await checked("home", () => checkHome(home)),
    await instructionsCheck(plan, stop.signal),
    limits,
    await checked("envelope", async () => envelopeText(await envelopeOf(plan, resolved?.settings))),
    await checked("sandbox", () => checkSandbox(plan, resolved?.settings)),
    await gitCheck(plan, context.env, stop.signal),
  ];
}

/** What the model of a new thread would be sent before its prompt. */
async function instructionsCheck({ resolved, workspace, home, layers }: Plan, signal: AbortSignal): Promise<Check> {
  if (resolved === undefined) return { name: "instructions", state: "ok", detail: "those of the thread" };
  const { settings } = resolved;
  const guides = await loadGuides({ workspace, settings, home, codexHome: layers.codexHome, masked: [home], signal });
  const sources = [
    ...(settings.baseInstructions === undefined
      ? sourceOf("Heddle's own instructions", instructionsFor({}).instructions)
      : []),
    ...instructionSources(settings),
    ...guides.map(({ path: source, bytes }) => ({ source, bytes })),
  ];
  return { name: "instructions", state: "ok", detail: sourcesText(sources), sources };
}

/** A home that is there must be writable; otherwise the folder it would be made in. */
function checkHome(home: string): string {
  let folder = home;
  while (!existsSync(folder) && path.dirname(folder) !== folder) folder = path.dirname(folder);
  try {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new HeddleError(
      "store.read-only",
      `${home} cannot be written: ${folder} is not a folder, or cannot be written`,
      {
        cause: error,
      },
    );
  }
  return folder === home ? home : `${home}, will be created`;
}

function checkChoices({ resolved, mcpServers }: Plan, args: ParsedArgs, cwd: string): string {
  if (resolved === undefined) return "checked when the thread is opened";
  const { limits, allowedTools: names } = parseBatchFlags(args, cwd);
  const { settings, provider } = resolved;
  if (provider === undefined) return limits === undefined ? "none" : JSON.stringify(limits);
  if (limits !== undefined) checkLimits(provider, { ...settings, limits });
  const { family } = modelInfo(provider, settings.model);
  allowedTools(names, { family, servers: mcpServers.map(({ name }) => name) });
  return limits === undefined ? "none" : JSON.stringify(limits);
}

type Entered = Awaited<ReturnType<typeof turnEnvelope>>;

async function envelopeOf(plan: Plan, settings: TurnSettings | undefined): Promise<Entered | undefined> {
  const { home, workspace, mcpServers } = plan;
  if (settings === undefined) return undefined;
  return turnEnvelope({ home, mcpServers, isUnattended: true }, { settings, workspace });
}

function envelopeText(entered: Entered | undefined): string {
  if (entered === undefined) return "checked when the thread is opened";
  const { envelope, ceiling } = entered;
  return ceiling === undefined ? envelope.id : `${envelope.id}, ceiling ${ceiling.envelope.id}`;
}

async function checkSandbox(plan: Plan, settings: TurnSettings | undefined): Promise<string> {
  const { workspace, home } = plan;
  const reading = {
    sandbox: "required",
    readRoots: undefined,
    writeRoots: [],
    masked: [home],
    network: "none",
  } as const;
  const { sandbox, readRoots, writeRoots, masked, network } = (await envelopeOf(plan, settings))?.envelope ?? reading;
  if (sandbox === "off") return "off, as requested";
  await using opened = await openSandbox({ workspace, readRoots, writeRoots, masked, network });
  await opened.ready;
  const hosts = typeof network === "string" ? "" : `, network: ${network.join(", ")}`;
  return `${opened.level}${readRoots === undefined ? "" : `, reads: ${readRoots.join(", ")}`}${hosts}`;
}

/** Worth knowing; a run does without it. */
async function gitCheck({ workspace, home }: Plan, env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Check> {
  try {
    const state = await gitState({ workspace, masked: [home], env, signal, timeoutMs: GIT_MS });
    if (state === undefined) return { name: "git", state: "skipped", detail: "no repository, or no git" };
    const commit = state.head === null ? "without a commit" : state.head.slice(0, 12);
    return { name: "git", state: "ok", detail: `${commit}${state.is_dirty ? ", with changes" : ""}` };
  } catch (error) {
    return { name: "git", state: "skipped", detail: toHeddleError(error).message };
  }
}
