/**
 * What a runner can do. A door that needs more than that is refused before anything is written, so that nothing that was
 * asked for is left out silently.
 */
import { HeddleError, type Envelope, type HookConfig, type InputPart, type TurnSettings } from "@heddle/protocol";
import { DEFAULT_MODEL, EMBEDDED } from "./config.ts";

export const RUNNER_ABILITIES = [
  /** Takes input while a turn runs. */
  "steering",
  /** Asks before what it wants beyond its sandbox. */
  "approvals",
  /** Asks before everything that is not known to be harmless. */
  "asksFirst",
  "images",
  /** Its answer is of a shape that is asked for. */
  "outputSchema",
  /** Its next turn knows what was said, without being told again. */
  "resume",
  /** A thread that begins with the past of another needs no repetition either. */
  "fork",
  "compact",
  /** Works on the goal of a thread, and ends it. */
  "goals",
  /** Is told what other agents send to its thread. */
  "messages",
  /** Calls tools that clients of the thread run. */
  "clientTools",
  /** Calls tools of MCP servers that a client brings. */
  "mcpServers",
  /** Has only the tools it is given by name. */
  "toolList",
  /** Hooks before and after its calls. */
  "hooks",
  /** Each request to a model is seen, so that their number can be limited. */
  "requests",
  /** What it used is known while it runs. */
  "usage",
  "cost",
  "models",
  "effort",
  /** Another model, or another effort, in the middle of a turn. */
  "turnChanges",
  "planMode",
  /** Takes instructions of owners and clients. */
  "instructions",
  /** What it thinks is shown. */
  "reasoning",
  "plan",
  /** Output of commands comes as they print it. */
  "liveOutput",
] as const;

export type RunnerAbility = (typeof RUNNER_ABILITIES)[number];
export type RunnerCapabilities = Readonly<Record<RunnerAbility, boolean>>;

export function capabilities(...able: readonly RunnerAbility[]): RunnerCapabilities {
  const entries = RUNNER_ABILITIES.map((ability) => [ability, able.includes(ability)] as const);
  return Object.fromEntries(entries) as Record<RunnerAbility, boolean>;
}

export const EVERY_ABILITY: RunnerCapabilities = capabilities(...RUNNER_ABILITIES);

export interface Able {
  readonly name: string;
  readonly capabilities: RunnerCapabilities;
}

/** `runner.unsupported`, with what cannot be done and what to do instead. */
export function requireAbility(runner: Able, ability: RunnerAbility, wanted: string): void {
  if (runner.capabilities[ability]) return;
  throw new HeddleError("runner.unsupported", `the runner ${runner.name} cannot ${wanted}`, {
    details: { runner: runner.name, ability },
  });
}

export interface Wanted {
  readonly settings: TurnSettings;
  readonly input: readonly InputPart[];
  readonly task?: string | undefined;
  /** The owner has hooks around calls. */
  readonly hasCallHooks: boolean;
}

/** Everything that a turn asks for, before it is admitted. */
export function requireAbilities(runner: Able, { settings, input, task, hasCallHooks }: Wanted): void {
  const needs = (isWanted: boolean, ability: RunnerAbility, wanted: string): void => {
    if (isWanted) requireAbility(runner, ability, wanted);
  };
  const { limits = {}, model } = settings;
  needs(task === "compact", "compact", "compact a conversation; its program does so by itself");
  needs(task === "goal", "goals", "work on the goal of a thread");
  needs(task === "message", "messages", "be started by messages; give its thread a turn");
  needs(hasImage(input), "images", "read images; leave them out");
  needs(
    settings.approvalPolicy === "untrusted",
    "asksFirst",
    'ask before every command; choose approval_policy = "on-request" or "never"',
  );
  needs(
    settings.approvalPolicy === "on-request" && settings.sandboxMode === "danger-full-access",
    "approvals",
    'ask before it acts without a sandbox; choose approval_policy = "never"',
  );
  needs(settings.outputSchema !== undefined, "outputSchema", "answer in a given shape; leave the output schema out");
  needs(settings.hasClientTools === true, "clientTools", "call tools of a client");
  needs((settings.mcpServers ?? []).length > 0, "mcpServers", "use MCP servers of a client");
  needs(settings.allowedTools !== undefined, "toolList", "be held to a list of tools; choose an envelope");
  needs(hasCallHooks, "hooks", "run the hooks before and after calls that config.toml has");
  needs(limits.maxRequests !== undefined, "requests", "be limited in its model requests; limit its time or its tokens");
  needs(limits.maxTokens !== undefined, "usage", "be limited in its tokens; limit its time");
  needs(limits.maxCostUsd !== undefined, "cost", "be limited in its cost; limit its tokens or its time");
  needs(runner.name !== EMBEDDED && model !== DEFAULT_MODEL, "models", `be given a model (${model})`);
  needs(settings.effort !== undefined, "effort", "be given a reasoning effort; leave it out");
  needs(settings.mode === "plan", "planMode", "plan only; choose --envelope plan");
  needs(hasInstructions(settings), "instructions", "take instructions besides the prompt");
}

/** The same of an envelope, which a turn that names one has only once it runs. */
export function requireAsking(runner: Able, { approval, sandbox }: Pick<Envelope, "approval" | "sandbox">): void {
  if (approval === "untrusted") requireAbility(runner, "asksFirst", "ask before every command");
  if (approval === "on-request" && sandbox === "off") requireAbility(runner, "approvals", "ask without a sandbox");
}

export function hasImage(input: readonly InputPart[]): boolean {
  return input.some(({ type }) => type === "image");
}

function hasInstructions({ baseInstructions, developerInstructions }: TurnSettings): boolean {
  return (baseInstructions ?? "") !== "" || (developerInstructions ?? "") !== "";
}

/** Before or after them. */
export function hasCallHooks(hooks: readonly HookConfig[]): boolean {
  return hooks.some(({ event }) => event === "PreToolUse" || event === "PostToolUse");
}
