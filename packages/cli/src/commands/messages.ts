/** `heddle tell` and `heddle ask`: a message to an agent. What is handed over is named: text, files by their hash, entries. */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { findAgent, findEntry, openHeddle, readMessage, type Heddle, type Sending } from "@heddle/agent";
import {
  defined,
  EXIT,
  exitCodeOf,
  HeddleError,
  InputRole,
  OWNER,
  reasonOf,
  visibleLine,
  visibleText,
  type Message,
  type NamedInput,
} from "@heddle/protocol";
import { makeHome, readConfiguration, storeAddress } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { hooksOf, limitOptions, mcpServersOf, providerConfigs, withLazyLogins } from "@heddle/runtime/settings";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { configChoices } from "../config-options.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { noRecord } from "./agents.ts";

const MAX_FILE_BYTES = 64 * 1024 * 1024;
const WHOLE_ENTRY_CHARS = 40;
const DEFAULT_TIMEOUT_SEC = 120;
const MAX_TIMEOUT_SEC = 86_400;

const SENDING: readonly OptionSpec[] = [
  { name: "json", help: "The message as JSON, as it stands" },
  { name: "role", value: "ROLE", choices: InputRole.options, help: "What it is to the agent (default: command)" },
  { name: "file", value: "PATH", isMultiple: true, completes: "file", help: "Hand over a file, by path and SHA-256" },
  { name: "entry", value: "ID", isMultiple: true, help: "Hand over an entry of the evidence" },
  { name: "reply-to", value: "ID", help: "The entry of the evidence that it answers" },
  { name: "id", value: "ID", help: "Sent again under this id it is the same message" },
  ...CONFIG_OPTIONS,
];

export const tellCommand: Command = {
  usage: "tell AGENT TEXT",
  about:
    "Sends an agent a message and expects no answer. It is durable when the command ends, and given to the agent with its\n" +
    "next turn; where messages wake the agent (heddle agents wake), a server starts that turn. AGENT is a name, or the id\n" +
    "of a thread. As a quote or as context the text is material for the agent, never an instruction.",
  options: SENDING,
  examples: [
    'heddle tell scout "the build machine is back"',
    'heddle tell scout "see what the log says" --file build.log --role context',
  ],
  run: (args, context) => send(args, context, { isAsk: false }),
};

export const askCommand: Command = {
  usage: "ask AGENT TEXT",
  about:
    "Asks an agent and waits for the answer, which goes to standard output. Where messages wake the agent, the turn that\n" +
    "answers runs here or in a server; otherwise the answer comes with its next turn. Without an answer in time the\n" +
    `command ends with exit code ${exitCodeOf("message.expired")}.`,
  options: [
    ...SENDING,
    {
      name: "timeout",
      value: "SECONDS",
      help: `How long an answer may take (default ${DEFAULT_TIMEOUT_SEC}, at most ${MAX_TIMEOUT_SEC})`,
    },
    { name: "script", value: "FILE", completes: "file", help: "Play this script instead of asking a model" },
  ],
  examples: ['heddle ask scout "which port does the test server use?" --timeout 60 --role quote'],
  run: (args, context) => send(args, context, { isAsk: true }),
};

async function send(
  args: ParsedArgs,
  context: CommandContext,
  { isAsk }: { readonly isAsk: boolean },
): Promise<number> {
  const [agent, ...words] = args.positionals;
  if (agent === undefined || words.length === 0) throw usage(`write heddle ${isAsk ? "ask" : "tell"} AGENT "TEXT"`);
  const role = args.value("role") === undefined ? undefined : InputRole.parse(args.value("role"));
  const timeoutMs = isAsk ? timeoutOf(args) : undefined;
  const files = await fileInputs(args, context);
  await (await requireRecord(agent, context))[Symbol.asyncDispose]();
  using stop = watchForStop(undefined);
  await using heddle = await open(args, context);
  const { id } = await findAgent(heddle.journal, agent);
  const entries = await Promise.all(args.values("entry").map((entry) => wholeEntry(heddle, entry)));
  const answered = args.value("reply-to");
  const replyTo = answered === undefined ? undefined : await wholeEntry(heddle, answered);
  const sending: Sending = {
    to: id,
    text: words.join(" "),
    inputs: [...files, ...entries.map(entryInput)],
    ...defined({ messageId: args.value("id"), role, replyTo, timeoutMs }),
  };
  const acts = await heddle.as(OWNER).messages();
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  if (timeoutMs === undefined) {
    const { messageId, how } = await acts.send(sending);
    const when =
      how === "wakes" ? "a server starts a turn for it" : "it is kept, and given to the agent with its next turn";
    await out.write(
      args.has("json") ? toLine(await readMessage(heddle.journal, messageId)) : `${messageId}: ${when}\n`,
    );
    return EXIT.ok;
  }
  const { messageId } = await acts.ask({ ...sending, timeoutMs }, stop.signal);
  const message = await readMessage(heddle.journal, messageId);
  if (args.has("json")) await out.write(toLine(message));
  else if (message.answer !== null)
    await out.write(`${out.isTerminal ? visibleText(message.answer) : message.answer}\n`);
  if (message.outcome === "answered") return EXIT.ok;
  throw noAnswer(message);
}

/** A message that is sent again may name an entry that was purged since. */
async function wholeEntry({ journal }: Heddle, id: string): Promise<string> {
  return id.length < WHOLE_ENTRY_CHARS ? findEntry(journal, id) : id;
}

function noAnswer({ messageId, outcome, failure }: Message): HeddleError {
  const code = outcome === "expired" ? "message.expired" : "message.refused";
  return new HeddleError(
    code,
    `${messageId} was ${outcome ?? "not answered"}: ${failure?.message ?? "no reason is given"}`,
  );
}

function timeoutOf(args: ParsedArgs): number {
  const seconds = Number(args.value("timeout") ?? DEFAULT_TIMEOUT_SEC);
  if (seconds > 0 && seconds <= MAX_TIMEOUT_SEC) return Math.ceil(seconds * 1000);
  throw usage(`--timeout must be a number of seconds above 0, at most ${MAX_TIMEOUT_SEC}`);
}

function entryInput(id: string): NamedInput {
  return { type: "entry", id };
}

async function fileInputs(args: ParsedArgs, { cwd }: CommandContext): Promise<readonly NamedInput[]> {
  return Promise.all(
    args.values("file").map(async (name) => {
      const file = path.resolve(cwd, name);
      try {
        const { size } = await stat(file);
        if (size > MAX_FILE_BYTES) throw usage(`--file ${visibleLine(name)} is larger than ${MAX_FILE_BYTES} bytes`);
        const sha256 = createHash("sha256")
          .update(await readFile(file))
          .digest("hex");
        return { type: "file", path: file, sha256 } as const;
      } catch (error) {
        throw usage(`--file ${visibleLine(name)} cannot be read: ${reasonOf(error)}`);
      }
    }),
  );
}

async function requireRecord(agent: string, context: CommandContext) {
  const journal = await openRecord(context.env);
  if (journal === undefined) throw noRecord(agent, context);
  return journal;
}

/** As `exec` opens it: the turn that answers a question may run here. */
async function open(args: ParsedArgs, { env, cwd }: CommandContext): Promise<Heddle> {
  const { config, codexHome } = await readConfiguration(configChoices(args), env);
  const script = args.value("script");
  const played = script === undefined ? {} : { scriptFile: path.resolve(cwd, script) };
  return openHeddle({
    home: await makeHome(env),
    store: storeAddress(config, env),
    codexHome,
    providers: withLazyLogins(providerConfigs(config, played, env), env),
    env,
    isUnattended: true,
    mcpServers: await mcpServersOf(config, env),
    hooks: hooksOf(config),
    hasEvidenceTools: config.evidence_tools,
    ...limitOptions(config),
  });
}
