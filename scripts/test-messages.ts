/** What scripts/test-reporter.ts tells scripts/test.ts, and the count that is kept of it. */
export type TestMessage =
  | { readonly kind: "file-started"; readonly file: string }
  | {
      readonly kind: "test";
      readonly state: "passed" | "failed" | "skipped";
      readonly name: string;
      readonly file: string;
      readonly durationMs: number;
    }
  | { readonly kind: "file-ended"; readonly file: string; readonly problems: readonly string[] }
  | {
      readonly kind: "end";
      readonly reason: "passed" | "failed" | "interrupted";
      readonly files: number;
      readonly problems: readonly string[];
    };

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  /** Failures that belong to no test. Each counts as one failed, so that the last line never looks better than the run. */
  readonly problems: string[];
  readonly slowest: { readonly label: string; readonly durationMs: number }[];
  readonly running: Set<string>;
  end: "passed" | "failed" | "interrupted" | undefined;
}

const SLOWEST_KEPT = 8;

export function newTally(): Tally {
  return { passed: 0, failed: 0, skipped: 0, problems: [], slowest: [], running: new Set(), end: undefined };
}

export function count(tally: Tally, message: TestMessage): void {
  switch (message.kind) {
    case "file-started":
      tally.running.add(message.file);
      return;
    case "test":
      tally[message.state] += 1;
      keepSlowest(tally, message);
      return;
    case "file-ended":
      tally.running.delete(message.file);
      tally.problems.push(...message.problems);
      return;
    case "end":
      tally.end = message.reason;
      tally.problems.push(...message.problems);
      return;
  }
}

export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: string }
  | { readonly kind: "stopped"; readonly why: string };

/** Adds what the end of the vitest process itself says: a crash, a stop, or a run that ran nothing. */
export function settle(tally: Tally, end: ChildEnd): void {
  if (end.kind === "stopped") tally.problems.push(end.why);
  else if (end.kind === "killed") tally.problems.push(`vitest was killed by ${end.signal}`);
  else if (tally.end === undefined) tally.problems.push(`vitest ended with code ${end.code} before the run was over`);
  else if (tally.passed + tally.failed + tally.problems.length === 0) tally.problems.push("no test ran");
  else if (failures(tally) === 0 && (end.code !== 0 || tally.end !== "passed")) {
    tally.problems.push(`vitest called the run ${tally.end} and ended with code ${end.code}`);
  }
}

export function failures(tally: Tally): number {
  return tally.failed + tally.problems.length;
}

export function lastLine(tally: Tally): string {
  const skipped = tally.skipped === 0 ? "" : `, ${tally.skipped} skipped`;
  return `${tally.passed} passed, ${failures(tally)} failed${skipped}`;
}

function keepSlowest(tally: Tally, test: { name: string; file: string; durationMs: number }): void {
  tally.slowest.push({ label: `${test.file} > ${test.name}`, durationMs: test.durationMs });
  tally.slowest.sort((a, b) => b.durationMs - a.durationMs);
  tally.slowest.length = Math.min(tally.slowest.length, SLOWEST_KEPT);
}
