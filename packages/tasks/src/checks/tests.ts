/**
 * A test run passes by its exit code and its counts: no failure, enough tests, no fewer than before the task began. Skipped
 * tests do not count. A report must come from this run.
 */
import type { LeafCheckOf } from "@heddle/protocol";
import { cannot, failed, passed, type CheckContext, type Finding, type RunLeaf, type TestCounts } from "./check.ts";
import { endsOf, isBroken, killedBy, type Command, type Ended } from "./commands.ts";
import { countJunit, countLines, countNodeSummary, countTap } from "./counts.ts";
import { relativePath } from "./relative-path.ts";

type TestsCheck = LeafCheckOf<"tests">;

const MAX_REPORT_BYTES = 16 * 1024 * 1024;
const REPORT_MS = 60_000;

export const tests: RunLeaf<"tests"> = async (check, context) => {
  const left = await removeReport(check, context);
  if (left !== undefined) return left;
  const end = await context.commands.run(check);
  const { output, sha256 } = end;
  if (isBroken(end)) return cannot(end.message, { output, sha256 });
  const killed = killedBy(end);
  if (killed !== undefined) return cannot(killed, { output, sha256 });
  const counts = await countsOf(check, end, context);
  if (typeof counts === "string") {
    const message = `it ended with ${end.exitCode}, and its tests cannot be counted: ${counts}`;
    return cannot(message, { output, sha256 });
  }
  const finding = judge(check, counts, { exitCode: end.exitCode, before: context.baseline.tests[context.name] });
  return { ...finding, tests: counts, output, sha256 };
};

export function ran({ passed: good, failed: bad }: TestCounts): number {
  return good + bad;
}

function judge(
  check: TestsCheck,
  counts: TestCounts,
  { exitCode, before }: { readonly exitCode: number; readonly before: TestCounts | undefined },
): Finding {
  const summary = `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
  if (counts.failed > 0) return failed(summary);
  if (exitCode !== 0) return failed(`${summary}, but the run ended with ${exitCode}`);
  if (ran(counts) < check.min) return failed(`${summary}: fewer than ${check.min} ran`);
  if (check.noFewer && before !== undefined && ran(counts) < ran(before)) {
    return failed(`${summary}: fewer than the ${ran(before)} that ran before the task began`);
  }
  if (check.maxSkipped !== undefined && counts.skipped > check.maxSkipped) {
    return failed(`${summary}: more than ${check.maxSkipped} skipped`);
  }
  return passed(summary);
}

async function countsOf(check: TestsCheck, end: Ended, context: CheckContext): Promise<TestCounts | string> {
  if (check.report === undefined) {
    if (!end.isWhole) return "it printed too much; let it write a report";
    return COUNT[check.format](end.text) ?? `its output cannot be read as ${wanted(check)}`;
  }
  const file = await context.commands.run({ ...besideRun(check), run: ["cat", "--", relativePath(check.report)] });
  if (isBroken(file) || file.exitCode !== 0) return `it has written no ${check.report}`;
  if (!file.isWhole) return `${check.report} has more than ${MAX_REPORT_BYTES} bytes`;
  const counts = COUNT[check.format](file.text);
  return counts ?? `${check.report} is not understood as ${wanted(check)}: ${endsOf(file.text).slice(0, 200)}`;
}

function wanted({ format }: TestsCheck): string {
  return format === "auto" ? "JUnit, TAP or a summary of a known runner; name the format, or a report" : format;
}

const COUNT: Readonly<Record<TestsCheck["format"], (text: string) => TestCounts | undefined>> = {
  junit: countJunit,
  tap: countTap,
  counts: countLines,
  // Node's TAP nests, and its own figures count what is inside.
  auto: (text) => countJunit(text) ?? countNodeSummary(text) ?? countTap(text) ?? countLines(text),
};

/**
 * Removes an old report in the room itself, whether it comes from the beginning, the agent or the setup. Returns a finding
 * when that fails.
 */
async function removeReport({ report, network }: TestsCheck, context: CheckContext): Promise<Finding | undefined> {
  if (report === undefined) return undefined;
  const end = await context.commands.run({ ...besideRun({ network }), run: ["rm", "-f", "--", relativePath(report)] });
  if (!isBroken(end) && end.exitCode === 0) return undefined;
  const { output, sha256 } = end;
  return cannot(`${report} was there before the run and cannot be removed`, { output, sha256 });
}

/** In the room of the test run, which depends on the network. */
function besideRun({ network }: Pick<TestsCheck, "network">): Omit<Command, "run"> {
  return { cwd: ".", timeoutMs: REPORT_MS, network, onlyStdout: true, maxBytes: MAX_REPORT_BYTES };
}
