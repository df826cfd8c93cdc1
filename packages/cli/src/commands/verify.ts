/**
 * `heddle verify`: is the record what was written, and did everything stay inside its bounds?
 * Exit codes are this command's own: 0 clean, 1 violation, 2 tampered, 3 cannot verify. Nothing examined is no proof.
 */
import type { Damage, VerifyReport, VerifyWatch } from "@heddle/journal";
import { clockMs, isHeddleError, toHeddleError, visibleLine } from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";

const TELL_EVERY_MS = 250;

export const VERIFY_EXIT = { clean: 0, violation: 1, tampered: 2, cannotVerify: 3 } as const;

export const verifyCommand: Command = {
  usage: "verify [THREAD]",
  about:
    "Walks hash chains, signed checkpoints and the witness of the whole record, or of one thread.\n" +
    "Exit code: 0 clean, 1 a bound was violated, 2 the record was changed, 3 it cannot be verified:\n" +
    "there is none, or its witness or checkpoints are missing. Events are evidence; lists of threads,\n" +
    "turns and usage are made from them and are not examined.",
  options: [{ name: "json", help: "One JSON object instead of text" }],
  examples: ["heddle verify", "heddle verify 01a1ddef-663f-7992-951d-be2be3662c1a --json"],
  run,
};

interface Verdict {
  readonly result: keyof typeof VERIFY_EXIT;
  readonly reason?: string;
  readonly report?: Omit<VerifyReport, "violations">;
  /** Protected paths that were written, as the record tells. */
  readonly violations: readonly string[];
}

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [thread, ...more] = args.positionals;
  if (more.length > 0) throw usage("name one thread, or none for the whole record: heddle verify [THREAD]");
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  using progress = openProgress(process.stderr);
  const verdict = await judge(context.env, thread, progress);
  progress.clear();
  await out.write(args.has("json") ? toLine(verdict) : text(verdict));
  return VERIFY_EXIT[verdict.result];
}

async function judge(env: NodeJS.ProcessEnv, thread: string | undefined, progress: Progress): Promise<Verdict> {
  try {
    await using journal = await openRecord(env);
    if (journal === undefined) return cannot(`there is no record in ${heddleHome(env)}`);
    if (thread !== undefined && (await journal.version(thread)) === 0) return cannot(`there is no thread ${thread}`);
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

/** One line that changes, for a person who waits; nobody else gets a word. */
function openProgress(stream: NodeJS.WriteStream): Progress {
  let toldAt = clockMs();
  let isShown = false;
  const clear = (): void => {
    if (isShown) stream.write("\r\x1b[K");
    isShown = false;
  };
  return {
    tell({ events, of }) {
      if (!stream.isTTY || clockMs() - toldAt < TELL_EVERY_MS) return;
      toldAt = clockMs();
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
    ...(report?.damage ?? []).map((damage) => `  ${place(damage)}${damage.kind}: ${damage.message}`),
    ...(report?.missing ?? []).map(({ kind, message }) => `  missing ${kind}: ${message}`),
    ...(report?.notices ?? []).map(({ kind, message }) => `  notice ${kind}: ${message}`),
    ...violations.map((path) => `  protected path written: ${path}`),
  ];
  // A path may hold a line end.
  return `${lines.map(visibleLine).join("\n")}\n`;
}

function place({ stream, version }: Damage): string {
  return stream === undefined ? "" : `${stream}${version === undefined ? "" : ` event ${version}`}: `;
}
