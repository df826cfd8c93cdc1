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
  | {
      readonly kind: "file-ended";
      readonly file: string;
      readonly problems: readonly string[];
      readonly cost: FileCost;
    }
  | {
      readonly kind: "end";
      readonly reason: "passed" | "failed" | "interrupted";
      readonly files: number;
      readonly problems: readonly string[];
    };

export interface FileCost {
  /** From the first import to the last hook. */
  readonly durationMs: number;
  /** Of its worker and of all that the worker waited for; missing where no hook ran. */
  readonly processorMs: number | undefined;
}

export interface Tally {
  readonly files: Map<string, FileTally>;
  /** Failures that belong to no file. Each counts as one failed, so that the last line never looks better than the run. */
  readonly problems: string[];
  /** What failed and then passed when its file was run by itself. */
  readonly unsteady: string[];
  readonly slowest: { readonly label: string; readonly durationMs: number }[];
  readonly costs: { readonly file: string; readonly cost: FileCost }[];
  readonly running: Set<string>;
  end: "passed" | "failed" | "interrupted" | undefined;
}

interface FileTally {
  passed: number;
  skipped: number;
  /** Names of tests, and failures that belong to none, each of which counts as one failed. */
  readonly failed: string[];
}

const SLOWEST_KEPT = 8;
const EXPENSIVE_SHOWN = 10;
/** When more files than this fail at once, it is no bad luck. */
const RUN_AGAIN_AT_MOST = 8;

export function newTally(): Tally {
  return { files: new Map(), problems: [], unsteady: [], slowest: [], costs: [], running: new Set(), end: undefined };
}

export function count(tally: Tally, message: TestMessage): void {
  switch (message.kind) {
    case "file-started":
      tally.running.add(message.file);
      return;
    case "test":
      countTest(ofFile(tally, message.file), message);
      keepSlowest(tally, message);
      return;
    case "file-ended":
      tally.running.delete(message.file);
      ofFile(tally, message.file).failed.push(...message.problems);
      tally.costs.push(message);
      return;
    case "end":
      tally.end = message.reason;
      tally.problems.push(...message.problems);
      return;
  }
}

function countTest(file: FileTally, test: Extract<TestMessage, { kind: "test" }>): void {
  if (test.state === "failed") file.failed.push(labelOf(test));
  else file[test.state] += 1;
}

function ofFile(tally: Tally, name: string): FileTally {
  const known = tally.files.get(name);
  if (known !== undefined) return known;
  const file: FileTally = { passed: 0, skipped: 0, failed: [] };
  tally.files.set(name, file);
  return file;
}

function labelOf({ file, name }: { readonly file: string; readonly name: string }): string {
  return `${file} > ${name}`;
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
  else if (sum(tally, ({ passed }) => passed) + failures(tally) === 0) tally.problems.push("no test ran");
  else if (failures(tally) === 0 && (end.code !== 0 || tally.end !== "passed")) {
    tally.problems.push(`vitest called the run ${tally.end} and ended with code ${end.code}`);
  }
}

/** The files in which something failed, when a second run can say more: they are few, and all failures are of files. */
export function filesToRunAgain(tally: Tally): readonly string[] {
  const files = [...tally.files].filter(([, { failed }]) => failed.length > 0).map(([name]) => name);
  return tally.problems.length > 0 || files.length > RUN_AGAIN_AT_MOST ? [] : files;
}

/** What the second run says of a file is what counts; what failed before and does not now is unsteady. */
export function takeSecond(tally: Tally, again: Tally): void {
  for (const [name, second] of again.files) {
    const first = tally.files.get(name)?.failed ?? [];
    tally.unsteady.push(...first.filter((label) => !second.failed.includes(label)));
    tally.files.set(name, second);
  }
  tally.problems.push(...again.problems);
}

function sum(tally: Tally, of: (file: FileTally) => number): number {
  return [...tally.files.values()].reduce((total, file) => total + of(file), 0);
}

export function failures(tally: Tally): number {
  return sum(tally, ({ failed }) => failed.length) + tally.problems.length;
}

export function lastLine(tally: Tally): string {
  const skipped = sum(tally, (file) => file.skipped);
  const passed = sum(tally, (file) => file.passed);
  return `${passed} passed, ${failures(tally)} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

/** By what they cost: on two cores for five workers the time of a file says as much of its neighbours as of itself. */
export function mostExpensive(tally: Tally): readonly string[] {
  const processorMs = ({ cost }: Tally["costs"][number]): number => cost.processorMs ?? 0;
  const inSeconds = (ms: number | undefined): string => (ms === undefined ? "?" : (ms / 1000).toFixed(1)).padStart(7);
  return tally.costs
    .toSorted((a, b) => processorMs(b) - processorMs(a))
    .slice(0, EXPENSIVE_SHOWN)
    .map((one) => `${inSeconds(one.cost.processorMs)} s ${inSeconds(one.cost.durationMs)} s  ${one.file}`);
}

function keepSlowest(tally: Tally, test: { name: string; file: string; durationMs: number }): void {
  tally.slowest.push({ label: labelOf(test), durationMs: test.durationMs });
  tally.slowest.sort((a, b) => b.durationMs - a.durationMs);
  tally.slowest.length = Math.min(tally.slowest.length, SLOWEST_KEPT);
}
