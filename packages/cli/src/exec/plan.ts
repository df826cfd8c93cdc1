/**
 * From the command line to a plan: everything that can be refused without opening the record is refused here, in the order
 * in which it is cheap; standard input is listened to meanwhile and waited for last.
 */
import path from "node:path";
import type { StartWatch } from "@heddle/agent";
import { isHeddleError, isSandboxMode, type InputPart, type SandboxMode } from "@heddle/protocol";
import { heddleHome, readConfiguration } from "@heddle/runtime/config";
import {
  hooksOf,
  mcpServersOf,
  openWorkspace,
  requireFolder,
  requireStanding,
  resolveSettings,
  standingOf,
  type Choices,
} from "@heddle/runtime/settings";
import { usage, type ParsedArgs } from "../args.ts";
import type { reviewPrompt as ReviewPromptFunction } from "@heddle/agent/review";
import { readImages, readSchema } from "../attachments.ts";
import { promptFromFile } from "../input-file.ts";
import type { CommandContext } from "../command.ts";
import { configChoices } from "../config-options.ts";
import type { Output } from "../print/output.ts";
import type { HeldFile } from "@heddle/tools/held-file";
import { beginPrompt } from "../prompt.ts";
import type { Stop } from "../stop.ts";
import { isForCodex, originOf } from "./caller.ts";
import { notesFor, refuseUnsupported } from "./request.ts";
import { parseRequest } from "./request.ts";

export type Plan = Awaited<ReturnType<typeof makePlan>>;

export async function makePlan(
  args: ParsedArgs,
  { env, cwd }: CommandContext,
  { err, stop, watch }: { readonly err: Output; readonly stop: Stop; readonly watch?: StartWatch },
) {
  const request = parseRequest(args);
  refuseUnsupported(args);
  const isEphemeral = args.has("ephemeral");
  if (isEphemeral && request.thread.kind.startsWith("resume")) {
    throw usage("--ephemeral would delete the resumed thread; fork it instead: heddle exec fork --ephemeral ID");
  }
  const notify = (text: string): void => {
    process.stderr.write(/^[A-Z]/.test(text) ? `${text}\n` : `heddle: ${text}\n`);
  };
  const reading = request.needsPrompt
    ? beginPrompt({
        args: await promptFromFile(args, cwd, request.promptArgs),
        get stdin() {
          return process.stdin;
        },
        signal: stop.signal,
        notify,
      })
    : undefined;

  const layers = await readConfiguration(configChoices(args), env);
  const { config } = layers;
  for (const note of notesFor(args, layers.warnings)) await err.write(`heddle: ${note}\n`);

  const mcpServers = await mcpServersOf(config, env);
  const workspace = await openWorkspace(args.value("cd"), cwd);
  const isNew = request.thread.kind === "new";
  const standing = isNew ? await standingOf(workspace, config.projects) : undefined;
  const mayBeOutsideGit = args.has("skip-git-repo-check") || args.has("dangerously-bypass-approvals-and-sandbox");
  if (standing !== undefined && !mayBeOutsideGit) requireStanding(workspace, standing);
  const { addedRoots, missing } = await addedFolders(args, cwd);
  for (const why of missing) await err.write(`heddle: ${why}; the run continues without it\n`);
  const choices = await readChoices(args, cwd, {
    isReview: request.review !== undefined,
    isTrustedFolder: standing?.isTrusted ?? false,
    addedRoots,
  });
  const resolved = isNew ? await resolveSettings(layers, choices, env) : undefined;
  for (const note of resolved?.notes ?? []) await err.write(`heddle: ${note}\n`);
  const lastMessage = args.value("output-last-message");
  const agentRoots = [workspace, ...choices.addedRoots, ...(config.sandbox_workspace_write?.writable_roots ?? [])];
  const lastMessageFile = await holdLast(lastMessage, { env, cwd }, agentRoots);
  const images = await readImages(args.values("image"), { cwd, mayBeUnreadable: isForCodex(env), notify });

  watch?.pause();
  const given = await reading?.prompt();
  watch?.goOn("make the plan");
  const prompt =
    request.review === undefined ? given?.text : await promptOfReview(request.review, workspace, given?.text);
  const input: readonly InputPart[] | undefined =
    prompt === undefined ? undefined : [{ type: "text", text: prompt }, ...images];
  return {
    home: heddleHome(env),
    /** Where the turn works, whatever folder its thread was in before, and where `--last` looks. */
    workspace,
    mayBeOutsideGit,
    thread: request.thread,
    /** undefined: nothing is asked, there is only a fork to make. */
    input,
    /** What the record of the turn must say about its input. */
    notices: given?.notices ?? [],
    isReview: request.review !== undefined,
    agentName: args.value("agent-name"),
    /** File, profile and `-c` as one. */
    config,
    layers,
    choices,
    /** What a new thread runs with; for an older one it depends on what that used. */
    resolved,
    mcpServers,
    hooks: hooksOf(config),
    origin: originOf(env),
    isEphemeral,
    lastMessageFile,
    /** Where agents may write, in this run or an earlier one. */
    agentRoots,
  };
}

/** Most runs have none, and what holds it need not be loaded then. */
async function holdLast(
  file: string | undefined,
  context: Pick<CommandContext, "cwd" | "env">,
  roots: readonly string[],
): Promise<HeldFile | undefined> {
  if (file === undefined) return undefined;
  return await (await import("../output-file.ts")).holdOutputFile(["-o", file], context, { roots });
}

/** As with Codex, a folder that is not there adds nothing and stops nothing. */
async function addedFolders(
  args: ParsedArgs,
  cwd: string,
): Promise<{ readonly addedRoots: readonly string[]; readonly missing: readonly string[] }> {
  const [addedRoots, missing]: [string[], string[]] = [[], []];
  for (const folder of args.values("add-dir")) {
    try {
      addedRoots.push(await requireFolder(path.resolve(cwd, folder), "--add-dir "));
    } catch (error) {
      if (!isHeddleError(error)) throw error;
      missing.push(error.message);
    }
  }
  return { addedRoots, missing };
}

async function listedHosts(args: ParsedArgs): Promise<Choices["networkHosts"]> {
  const hosts = args.values("network-host");
  if (hosts.length === 0) return undefined;
  const { hostRuleProblem } = await import("@heddle/protocol/hosts");
  for (const host of hosts) {
    const problem = hostRuleProblem(host);
    if (problem !== undefined) throw usage(`--network-host "${host}" ${problem}`);
  }
  if (sandboxMode(args) === "danger-full-access") {
    throw usage("--network-host has no effect without a sandbox; choose -s workspace-write or read-only");
  }
  return [...new Set(hosts)];
}

async function readChoices(
  args: ParsedArgs,
  cwd: string,
  known: { readonly isReview: boolean } & Required<Pick<Choices, "isTrustedFolder" | "addedRoots">>,
): Promise<Choices> {
  const { isReview, ...rest } = known;
  const schemaFile = args.value("output-schema");
  const script = args.value("script");
  const isLocal = args.has("oss") || args.has("local-provider");
  return {
    runner: args.value("runner"),
    model: args.value("model"),
    profile: args.value("profile"),
    // A review changes nothing.
    sandboxMode: isReview ? "read-only" : sandboxMode(args),
    ...(isReview ? {} : { envelope: args.value("envelope") }),
    ceiling: args.value("ceiling"),
    ...rest,
    ...(isLocal ? { local: { provider: args.value("local-provider") } } : {}),
    scriptFile: script === undefined ? undefined : path.resolve(cwd, script),
    networkHosts: await listedHosts(args),
    ...(args.has("search") ? { webSearch: "live" } : {}),
    ...(schemaFile === undefined ? {} : { outputSchema: await readSchema(schemaFile, cwd) }),
  };
}

function sandboxMode(args: ParsedArgs): SandboxMode | undefined {
  const named = args.value("sandbox");
  const envelope = args.value("envelope");
  const modes = ["sandbox", "dangerously-bypass-approvals-and-sandbox", "full-auto", "approve-for-me"];
  const other = envelope === undefined ? undefined : modes.find((name) => args.has(name));
  if (other !== undefined) throw usage(`--${other} contradicts --envelope ${envelope}; give one of them`);
  if (args.has("dangerously-bypass-approvals-and-sandbox")) {
    if (named !== undefined && named !== "danger-full-access") {
      throw usage(`--dangerously-bypass-approvals-and-sandbox contradicts -s ${named}; give one of them`);
    }
    return "danger-full-access";
  }
  if (named !== undefined && isSandboxMode(named)) return named;
  return args.has("full-auto") || args.has("approve-for-me") ? "workspace-write" : undefined;
}

/** Loaded for a review only. */
async function promptOfReview(...given: Parameters<typeof ReviewPromptFunction>): Promise<string> {
  return (await import("@heddle/agent/review")).reviewPrompt(...given);
}
