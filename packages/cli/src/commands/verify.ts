/**
 * `heddle verify`: is the record what was written, and did everything stay inside its bounds?
 * Exit codes are this command's own: 0 clean, 1 violation, 2 tampered, 3 cannot verify. Nothing examined is no proof.
 */
import { createReadStream, statSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { findThread } from "@heddle/agent";
import { verifyExport, type Damage, type ExportReport, type VerifyReport, type VerifyWatch } from "@heddle/journal";
import { clockMs, HeddleError, isHeddleError, toHeddleError, visibleLine } from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";

const PRINT_EVERY_MS = 250;

export const VERIFY_EXIT = { clean: 0, violation: 1, tampered: 2, cannotVerify: 3 } as const;

export const verifyCommand: Command = {
  usage: "verify [THREAD | FILE | -]",
  about:
    "Checks hash chains, signed checkpoints and the witness of the whole record, or of one thread (an id, the first 8\n" +
    "characters of one, or a name). With FILE, or - for standard input, it checks what heddle threads export wrote, on any\n" +
    "machine; compare the key it was signed with to the one you know of that home.\n" +
    "Exit code: 0 clean, 1 a bound was violated, 2 the record was changed, 3 it cannot be verified: it does not exist, or\n" +
    "its witness or checkpoints are missing. Only events are evidence; lists of threads, turns and usage are derived from\n" +
    "them and are not examined.",
  options: [
    { name: "json", help: "One JSON object instead of text" },
    { name: "key", value: "KEY", help: "With FILE: refuse an export that another key signed" },
  ],
  examples: [
    "heddle verify",
    "heddle verify 01a1ddef --json",
    "heddle threads export 01a1ddef -o thread.jsonl && heddle verify thread.jsonl",
  ],
  run,
};

interface Verdict {
  readonly result: keyof typeof VERIFY_EXIT;
  readonly reason?: string;
  readonly report?: Omit<VerifyReport, "violations"> | ExportReport;
  /** Protected paths that were written, as the record tells. */
  readonly violations: readonly string[];
}

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [what, ...more] = args.positionals;
  if (more.length > 0)
    throw usage("name one thread or file, or none for the whole record: heddle verify [THREAD | FILE]");
  const lines = what === undefined ? undefined : exportedLines(what, context.cwd);
  if (lines === undefined && args.has("key"))
    throw usage("--key is for an exported file: heddle verify FILE --key KEY");
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  using progress = openProgress(process.stderr);
  const verdict =
    lines === undefined ? await judge(context.env, what, progress) : await judgeExport(lines, args.value("key"));
  progress.clear();
  await out.write(args.has("json") ? toLine(verdict) : text(verdict));
  return VERIFY_EXIT[verdict.result];
}

/** undefined: it names no file. */
function exportedLines(what: string, cwd: string): AsyncIterable<string> | undefined {
  if (what === "-") return linesOf(process.stdin);
  const file = path.resolve(cwd, what);
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? linesOf(createReadStream(file)) : undefined;
}

const MAX_LINE_CHARS = 256 * 1024 * 1024;

async function* linesOf(stream: Readable): AsyncGenerator<string, void, void> {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_CHARS)
      throw new HeddleError("usage.invalid", "this is not an export: a line is too long");
    yield* lines;
  }
  if (rest !== "") yield rest;
}

async function judgeExport(lines: AsyncIterable<string>, key: string | undefined): Promise<Verdict> {
  try {
    const report = await verifyExport(lines);
    if (report.thread === undefined) return { ...cannot("this is not an export of heddle threads export"), report };
    if (report.damage.length > 0) return { result: "tampered", report, violations: [] };
    if (report.keyId === undefined) return { ...cannot("nothing in it is signed"), report, violations: [] };
    if (key !== undefined && key !== report.keyId)
      return {
        result: "tampered",
        reason: `it is signed by key ${report.keyId}, not by ${key}`,
        report,
        violations: [],
      };
    const [end] = report.unsigned;
    if (end !== undefined)
      return {
        ...cannot(
          `of ${end.stream} only the events up to ${end.signedTo} of ${end.lastVersion} are signed; whoever handed it on may have written the others. Export it again with this version`,
        ),
        report,
      };
    return { result: "clean", report, violations: [] };
  } catch (error) {
    return cannot(toHeddleError(error).message);
  }
}

async function judge(env: NodeJS.ProcessEnv, selector: string | undefined, progress: Progress): Promise<Verdict> {
  try {
    await using journal = await openRecord(env);
    if (journal === undefined) return cannot(`there is no record in ${heddleHome(env)}`);
    const thread = selector === undefined ? undefined : (await findThread(journal, selector)).id;
    const { violations, ...report } = await journal.verify(thread, { onProgress: progress.tell });
    if (report.damage.length > 0) return { result: "tampered", report, violations: [] };
    if (report.events === 0) return { ...cannot("the record is empty; nothing was examined"), report };
    if (violations.length > 0) return { result: "violation", report, violations };
    if (report.missing.length > 0) return { ...cannot("evidence outside the database is missing"), report };
    return { result: "clean", report, violations };
  } catch (error) {
    const { code, message } = toHeddleError(error);
    return isHeddleError(error) && code === "store.damaged"
      ? { result: "tampered", reason: message, violations: [] }
      : cannot(message);
  }
}

interface Progress extends Disposable {
  readonly tell: NonNullable<VerifyWatch["onProgress"]>;
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
  return {
    tell({ events, of }) {
      if (!stream.isTTY || clockMs() - shownAt < PRINT_EVERY_MS) return;
      shownAt = clockMs();
      isShown = true;
      const share = of === undefined || of === 0 ? "" : ` of ${of} (${Math.floor((100 * events) / of)}%)`;
      stream.write(`\r\x1b[Kverifying: ${events}${share} events`);
    },
    clear,
    [Symbol.dispose]: clear,
  };
}

function cannot(reason: string): Verdict {
  return { result: "cannotVerify", reason, violations: [] };
}

function text({ result, reason, report, violations }: Verdict): string {
  const title = { clean: "clean", violation: "violation", tampered: "tampered", cannotVerify: "cannot verify" }[result];
  const counts =
    report === undefined
      ? ""
      : `${report.events} events in ${report.streams} streams, ${report.checkpoints} checkpoints examined`;
  const lines = [
    `${title}: ${reason ?? counts}`,
    ...(report?.damage ?? []).map((damage) => `  ${positionOf(damage)}${damage.kind}: ${damage.message}`),
    ...(report !== undefined && "missing" in report ? ownEvidence(report) : []),
    ...(report !== undefined && "keyId" in report ? exportFacts(report) : []),
    ...violations.map((path) => `  protected path written: ${path}`),
  ];
  // A path may hold a line end.
  return `${lines.map(visibleLine).join("\n")}\n`;
}

function ownEvidence({ missing, notices }: Pick<VerifyReport, "missing" | "notices">): readonly string[] {
  return [
    ...missing.map(({ kind, message }) => `  missing ${kind}: ${message}`),
    ...notices.map(({ kind, message }) => `  notice ${kind}: ${message}`),
  ];
}

function exportFacts({ thread, keyId }: ExportReport): readonly string[] {
  return [
    ...(thread === undefined ? [] : [`  thread ${thread}`]),
    ...(keyId === undefined ? [] : [`  signed by key ${keyId}: compare it with the key of the home it came from`]),
  ];
}

function positionOf({ stream, version }: Damage): string {
  return stream === undefined ? "" : `${stream}${version === undefined ? "" : ` event ${version}`}: `;
}
