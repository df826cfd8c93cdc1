/** `heddle runners`: who can carry out turns on this machine, what each can do, and what to do about what is missing. */
import { listRunners, RUNNER_ABILITIES, type ListedRunner } from "@heddle/agent/list-runners";
import { EXIT, visibleText } from "@heddle/protocol";
import { loadConfig } from "@heddle/runtime/config";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { styleFor, type Style } from "../print/style.ts";

/** Programs are asked side by side; one that hangs is listed as such. */
const ASK_MS = 15_000;

export const runnersCommand: Command = {
  usage: "runners [NAME] [--json]",
  about:
    "Lists Heddle's own loop and the agent programs that can carry out turns: whether the program is installed, its version,\n" +
    "whether a user is logged in there, as the program itself reports, and what is missing. With NAME: also what it can do.\n" +
    "No file of another program is read.",
  options: [{ name: "json", help: "One JSON object per runner, with its abilities" }],
  examples: ["heddle runners", "heddle runners claude", "heddle runners --json", 'heddle exec --runner codex "hello"'],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [name, ...more] = args.positionals;
  if (more.length > 0) throw usage("name one runner: heddle runners NAME");
  const { config } = await loadConfig(env);
  const configs = config.runners ?? {};
  const found = await listRunners(configs, env, { only: name, signal: AbortSignal.timeout(ASK_MS) });
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const style = styleFor("auto", out.isTerminal, env);
  for (const runner of found) {
    if (args.has("json"))
      await out.write(toLine({ ...runner, isDefault: runner.name === (config.runner ?? "embedded") }));
    else await out.write(`${lines(runner, style, name !== undefined)}\n`);
  }
  return EXIT.ok;
}

function lines(runner: ListedRunner, style: Style, isWhole: boolean): string {
  const { name, version, program, problems, capabilities } = runner;
  const head = `${markOf(runner, style)}   ${name.padEnd(12)} ${visibleText([version, loginText(runner), program].filter((part) => part !== undefined && part !== "").join(", "))}`;
  const wrong = problems.map(({ message, fix }) => `         ${visibleText(`${message}: ${fix}`)}`);
  const able = RUNNER_ABILITIES.map(
    (ability) => `         ${capabilities[ability] ? "yes" : style.dim("no ")}  ${ABILITIES[ability]}`,
  );
  return [head, ...wrong, ...(isWhole ? able : [])].join("\n");
}

/** As the table of docs/use/agents.md has them. */
const ABILITIES: Readonly<Record<(typeof RUNNER_ABILITIES)[number], string>> = {
  steering: "input while a turn runs",
  approvals: "approvals",
  asksFirst: "asking before every act",
  images: "images",
  outputSchema: "answers of a given shape",
  resume: "next turn without repeating the past",
  fork: "the same for a fork",
  compact: "compaction",
  goals: "goals",
  messages: "turns that messages start",
  clientTools: "tools of clients",
  mcpServers: "MCP servers of clients",
  toolList: "a list of tools to be held to",
  hooks: "hooks around calls",
  requests: "limit of model requests",
  usage: "token usage",
  cost: "limit of cost",
  models: "model can be named",
  effort: "effort can be named",
  turnChanges: "another model or effort in a running turn",
  planMode: "plan mode",
  instructions: "instructions of owner and client",
  reasoning: "reasoning is shown",
  plan: "plan",
  liveOutput: "output of commands as it is printed",
};

function markOf({ isInstalled, problems }: ListedRunner, style: Style): string {
  if (!isInstalled) return style.dim("none  ");
  return problems.length === 0 ? style.bold("ok    ") : style.yellow("wants ");
}

function loginText({ login, isInstalled }: ListedRunner): string {
  if (!isInstalled) return "not installed";
  return {
    loggedIn: "logged in",
    loggedOut: "not logged in",
    unknown: "does not report who is logged in",
    notNeeded: "",
  }[login];
}
