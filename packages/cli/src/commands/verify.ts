/**
 * `heddle verify`: is the record what was written, and did everything stay inside its bounds? In six levels, each of which
 * says how much it examined. Exit codes are this command's own: 0 clean, 1 violation, 2 tampered, 3 cannot verify, 64 wrong
 * arguments. Nothing examined is no proof.
 */
import { createReadStream, statSync } from "node:fs";
import path from "node:path";
import type { VerifyWatch } from "@heddle/journal";
import { linesOf } from "@heddle/journal/imports";
import type { Level } from "@heddle/journal/verification";
import { clockMs, visibleLine } from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { cannot, DEFAULT_LEVEL, verdictOf, verifyRecord } from "@heddle/tasks/verification";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { judgeBundle } from "../verify/bundle.ts";
import { USAGE_EXIT, VERIFY_EXIT, verdictText, type Verdict } from "../verify/verdict.ts";

const PRINT_EVERY_MS = 250;

export const verifyCommand: Command = {
  usage: "verify [THREAD | TASK | FILE | - | --all]",
  about:
    "Checks the whole record, one thread (an id, the first 8 characters of one, or a name), or one task with the threads of\n" +
    "its attempts. With FILE, or - for standard input, it checks a bundle of heddle evidence export or heddle threads export,\n" +
    "on any machine; compare the key it was signed with to the one you know of that home.\n" +
    "Levels: 1 hash chains, 2 signed checkpoints and witness, 3 structure, 4 every call against the envelope on record,\n" +
    "5 files against the lists taken when an envelope was entered and left, 6 a task's checks run again.\n" +
    "Exit code: 0 clean, 1 a bound was violated, 2 the record was changed, 3 it cannot be verified: it does not exist,\n" +
    "evidence is missing, nothing was examined, or what you named is still running; 64 these arguments are wrong.",
  options: [
    { name: "all", help: "The whole record (default)" },
    {
      name: "level",
      value: "N",
      help: `The highest level, 1 to 6 (default ${DEFAULT_LEVEL}); one that examines nothing is exit code 3`,
    },
    { name: "json", help: "One JSON object instead of text" },
    {
      name: "key",
      value: "KEY",
      help: "With FILE: refuse what another key signed; an id, or a file with the public key",
    },
  ],
  examples: [
    "heddle verify",
    "heddle verify 01a1ddef --json",
    "heddle verify task_01a1ddef --level 6",
    "heddle threads export 01a1ddef -o thread.jsonl && heddle verify thread.jsonl",
  ],
  usageExit: USAGE_EXIT,
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [what, ...more] = args.positionals;
  if (more.length > 0 || (what !== undefined && args.has("all")))
    throw usage("name one thread, task or file, or none for the whole record: heddle verify [THREAD | TASK | FILE]");
  const level = levelIn(args.value("level"));
  const lines = what === undefined ? undefined : bundleLines(what, context.cwd);
  if (lines === undefined && args.has("key")) throw usage("--key is for a bundle: heddle verify FILE --key KEY");
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  using progress = openProgress(process.stderr);
  using stop = watchForStop(undefined);
  const verdict =
    lines === undefined
      ? await judge(context.env, { selector: what, level, progress, signal: stop.signal })
      : await judgeBundle(lines, { key: args.value("key"), level });
  progress.clear();
  if (stop.exitCode !== undefined) return stop.exitCode;
  await out.write(args.has("json") ? toLine(verdict) : verdictText(verdict));
  return VERIFY_EXIT[verdict.result];
}

function levelIn(text: string | undefined): Level | undefined {
  const levels: readonly Level[] = [1, 2, 3, 4, 5, 6];
  const level = levels.find((one) => String(one) === text);
  if (text !== undefined && level === undefined) throw usage("--level takes a number from 1 to 6");
  return level;
}

/** undefined: it names no file. */
function bundleLines(what: string, cwd: string): AsyncIterable<string> | undefined {
  if (what === "-") return linesOf(process.stdin);
  const file = path.resolve(cwd, what);
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? linesOf(createReadStream(file)) : undefined;
}

interface Question {
  readonly selector: string | undefined;
  readonly level: Level | undefined;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

async function judge(env: NodeJS.ProcessEnv, { progress, ...question }: Question): Promise<Verdict> {
  try {
    await using journal = await openRecord(env);
    const home = heddleHome(env);
    if (journal === undefined) return cannot(`there is no record in ${home}`);
    return await verifyRecord(journal, { ...question, home, onProgress: progress.tell, onCheck: progress.check });
  } catch (error) {
    return verdictOf(error);
  }
}

interface Progress extends Disposable {
  readonly tell: NonNullable<VerifyWatch["onProgress"]>;
  readonly check: (name: string) => void;
  clear(): void;
}

/** One line that is updated, on a terminal only. */
function openProgress(stream: NodeJS.WriteStream): Progress {
  let shownAt = clockMs();
  let isShown = false;
  const clear = (): void => {
    if (isShown) stream.write("\r\x1b[K");
    isShown = false;
  };
  const show = (text: string): void => {
    shownAt = clockMs();
    isShown = true;
    stream.write(`\r\x1b[K${text}`);
  };
  return {
    tell({ events, of }) {
      if (!stream.isTTY || clockMs() - shownAt < PRINT_EVERY_MS) return;
      const share = of === undefined || of === 0 ? "" : ` of ${of} (${Math.floor((100 * events) / of)}%)`;
      show(`verifying: ${events}${share} events`);
    },
    check(name) {
      if (stream.isTTY) show(`verifying: runs ${visibleLine(name)}`);
    },
    clear,
    [Symbol.dispose]: clear,
  };
}
