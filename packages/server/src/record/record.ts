/** The record as programs have it verified, exported, imported and purged: the same as by the command line. */
import { exportThread } from "@heddle/agent";
import { breathe, type Journal } from "@heddle/journal";
import type { ReceivedBundle } from "@heddle/journal/imports";
import { HeddleError, type By } from "@heddle/protocol";
import type { ImportAnswer, VerdictAnswer, VerifyBody } from "@heddle/protocol/http";
import type { z } from "zod";
import { withinLimit } from "./time-limit.ts";
import { takeTurn } from "./one-at-a-time.ts";

/** Of one bundle that comes in through a door; larger ones are for the command line. */
const MAX_RECEIVED_BYTES = 1024 ** 3;
/** Lines of one message. */
const PART_CHARS = 256 * 1024;

interface Store {
  readonly journal: Journal;
  readonly home: string;
}

/** Of one verification through a door; what takes longer is for the command line, which has no limit. */
const VERIFY_MS = 10 * 60_000;

export async function verdict(
  { journal, home }: Store,
  { subject, level }: z.output<typeof VerifyBody>,
  { signal: gone, limitMs = VERIFY_MS }: { readonly signal: AbortSignal; readonly limitMs?: number | undefined },
): Promise<VerdictAnswer> {
  using _turn = takeTurn(journal, "a verification");
  const [at, upTo] = [Date.now(), await journal.position()];
  // Loaded by whoever asks for it.
  const { verifyRecord } = await import("@heddle/tasks/verification");
  const refuse = (): HeddleError => {
    const command = ["heddle verify", ...(subject === undefined ? [] : [subject])].join(" ");
    const message = `the verification took longer than ${limitMs / 1000} s and was ended; without a limit: ${command}`;
    return new HeddleError("evidence.timeout", message);
  };
  const { report, ...found } = await withinLimit(gone, { ms: limitMs, refuse }, (signal) =>
    verifyRecord(journal, { home, selector: subject, level, signal }),
  );
  const answer = {
    ...found,
    at,
    upTo,
    ...(report === undefined ? {} : { report: { ...report } }),
    levels: found.levels.map((one) => ({ ...one })),
    findings: [...found.findings],
    running: [...found.running],
    violations: [...found.violations],
  };
  remember(journal, subject, answer);
  return answer;
}

/** Of one server: subjects whose last verdict is kept, the oldest go. */
const MAX_KEPT = 200;
const kept = new WeakMap<Journal, Map<string, VerdictAnswer>>();

function remember(journal: Journal, subject = "", answer: VerdictAnswer): void {
  const verdicts = kept.get(journal) ?? new Map<string, VerdictAnswer>();
  kept.set(journal, verdicts);
  verdicts.delete(subject);
  verdicts.set(subject, answer);
  const [oldest] = verdicts.keys();
  if (verdicts.size > MAX_KEPT && oldest !== undefined) verdicts.delete(oldest);
}

/** undefined: it was not verified since the server started. */
export function lastVerdict(journal: Journal, subject = ""): VerdictAnswer | undefined {
  return kept.get(journal)?.get(subject);
}

/** Each with its line end. */
export async function* bundleOf(
  journal: Journal,
  threadId: string,
  withOutputs: boolean,
): AsyncGenerator<string, void, void> {
  for await (const line of exportThread(journal, threadId, { withOutputs })) {
    yield line.endsWith("\n") ? line : `${line}\n`;
    await breathe();
  }
}

/** Lines of a bundle, many in one part. */
export async function* partsOf(lines: AsyncIterable<string>): AsyncGenerator<string[], void, void> {
  let part: string[] = [];
  let chars = 0;
  for await (const line of lines) {
    part.push(line.trimEnd());
    chars += line.length;
    if (chars < PART_CHARS) continue;
    yield part.splice(0);
    part = [];
    chars = 0;
  }
  if (part.length > 0) yield part;
}

export interface Incoming extends AsyncDisposable {
  readonly bundle: ReceivedBundle;
}

/** One bundle at a time comes in; what was received of it is gone when this is disposed. */
export async function receive({ journal, home }: Store, maxBytes = MAX_RECEIVED_BYTES): Promise<Incoming> {
  const turn = takeTurn(journal, "an import");
  try {
    const { receiveBundle } = await import("@heddle/journal/imports");
    const bundle = await receiveBundle(home, { maxBytes });
    return {
      bundle,
      async [Symbol.asyncDispose]() {
        turn[Symbol.dispose]();
        await bundle[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    turn[Symbol.dispose]();
    throw error;
  }
}

export async function takeOver(
  { journal, home }: Store,
  { bundle }: Incoming,
  { by, trustKey }: By & { readonly trustKey: string | undefined },
): Promise<ImportAnswer> {
  const { importBundle } = await import("@heddle/journal/imports");
  const done = await importBundle(journal, () => bundle.lines(), { home, by, trust: trustKey });
  return { ...done, streams: [...done.streams] };
}
