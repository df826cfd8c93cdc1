/** Runs commands one after another. All run even when one fails, so that one round shows every problem. */
import { spawnSync } from "node:child_process";

export interface Step {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  /** Shown while it runs, not only when it fails. */
  readonly isStreamed?: boolean;
}

/** The names of the steps that failed. */
export function runSteps(steps: readonly Step[], { cwd }: { readonly cwd: string }): string[] {
  return steps.filter((step) => !isClean(step, cwd)).map(({ name }) => name);
}

const MAX_SHOWN_BYTES = 64 * 1024 * 1024;

function isClean({ name, command, isStreamed = false }: Step, cwd: string): boolean {
  const startedAt = performance.now();
  const [program, ...args] = command;
  const output = isStreamed ? "inherit" : "pipe";
  const result = spawnSync(program, args, {
    cwd,
    stdio: ["ignore", output, output],
    encoding: "utf8",
    maxBuffer: MAX_SHOWN_BYTES,
  });
  const passed = result.status === 0;
  console.log(`${passed ? "ok    " : "FAILED"} ${seconds(startedAt).padStart(7)}  ${name}`);
  if (passed) return true;
  const ended = result.error?.message ?? (result.signal === null ? undefined : `killed by ${result.signal}`);
  console.log([result.stdout, result.stderr, ended].filter(Boolean).join("\n"));
  return false;
}

export function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
