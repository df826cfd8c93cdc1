/**
 * Runs inside vitest and tells scripts/test.ts what happens, over the IPC channel it was started with.
 * Results are sent as they come, so that a crash of vitest still leaves a true count of what had run.
 */
import type { Reporter, SerializedError, TestCase, TestModule, TestRunEndReason } from "vitest/node";
import type { TestMessage } from "./test-messages.ts";

/** A class and a default export, because that is how vitest takes a reporter from a file. */
export default class ToParent implements Reporter {
  onInit(): void {
    // The parent is gone: nobody will read the result, and nobody else would end this process.
    process.once("disconnect", () => process.exit(1));
    // Listening must not keep vitest alive once it is done.
    process.channel?.unref();
  }

  async onTestModuleStart(module: TestModule): Promise<void> {
    await send({ kind: "file-started", file: module.relativeModuleId });
  }

  async onTestCaseResult(test: TestCase): Promise<void> {
    const { state } = test.result();
    if (state !== "pending") await send({ kind: "test", state, ...describe(test) });
  }

  async onTestModuleEnd(module: TestModule): Promise<void> {
    const { collectDuration, duration } = module.diagnostic();
    const cost = { durationMs: collectDuration + duration, processorMs: module.meta().processorMs };
    await send({ kind: "file-ended", file: module.relativeModuleId, problems: problemsOf(module), cost });
  }

  async onTestRunEnd(
    modules: readonly TestModule[],
    unhandledErrors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): Promise<void> {
    await send({ kind: "end", reason, files: modules.length, problems: unhandledErrors.map(unhandled) });
  }
}

function describe(test: TestCase): { name: string; file: string; durationMs: number } {
  return {
    name: test.fullName,
    file: test.module.relativeModuleId,
    durationMs: test.diagnostic()?.duration ?? 0,
  };
}

/** Failures that belong to no test: the file did not load, or a hook around a whole suite failed. */
function problemsOf(module: TestModule): string[] {
  const file = module.relativeModuleId;
  const problems = module.errors().map((error) => `${file}: ${firstLine(error)}`);
  for (const suite of module.children.allSuites()) {
    for (const error of suite.errors()) problems.push(`${file} > ${suite.fullName}: ${firstLine(error)}`);
  }
  return problems;
}

function unhandled(error: SerializedError): string {
  return `unhandled error: ${firstLine(error)}`;
}

function firstLine(error: SerializedError): string {
  const [line = ""] = error.message.split("\n");
  return line;
}

async function send(message: TestMessage): Promise<void> {
  await new Promise<void>((done, fail) => {
    if (process.send === undefined) return fail(new Error("test-reporter.ts is only used by scripts/test.ts"));
    process.send(message, (error: Error | null) => (error === null ? done() : fail(error)));
  });
}
