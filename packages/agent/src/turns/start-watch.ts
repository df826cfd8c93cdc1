/**
 * The steps of a start, until its first request. A slow start is reported once, with its step, what it waits for and
 * the load of the machine: in the record of its turn, and before that in the log.
 */
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { clockMs, type NoticeText } from "@heddle/protocol";

/** Everything before a request takes a small part of it. */
const SLOW_START_MS = 5_000;
/** One sandbox has a handful of processes. */
const MAX_CHILDREN = 16;

export interface StartWatchOptions {
  readonly slowMs?: number | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

export class StartWatch implements Disposable {
  readonly #steps: { readonly name: string; readonly at: number }[] = [];
  readonly #slowMs: number;
  readonly #log: ((line: string) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #startedAt: number;
  #pausedAt: number | undefined;
  #due = 0;
  #report: NoticeText | undefined;
  #tell: ((text: NoticeText) => void) | undefined;

  constructor(first: string, { slowMs = SLOW_START_MS, log }: StartWatchOptions = {}) {
    this.#slowMs = slowMs;
    this.#log = log;
    this.#startedAt = clockMs();
    this.step(first);
    this.#arm();
  }

  step(name: string): void {
    this.#steps.push({ name, at: clockMs() });
  }

  /** What follows may take any time: input of others, a queue. */
  pause(): void {
    this.#pausedAt ??= clockMs();
    clearTimeout(this.#timer);
  }

  goOn(name: string): void {
    if (this.#pausedAt !== undefined) this.#startedAt += clockMs() - this.#pausedAt;
    this.#pausedAt = undefined;
    this.step(name);
    this.#arm();
  }

  /** From here on a turn can record it; an earlier report is recorded now. */
  tellTo(tell: (text: NoticeText) => void): void {
    this.#tell = tell;
    if (this.#report !== undefined) tell(this.#report);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    // A blocked process could not look at the clock.
    if (this.#pausedAt === undefined && clockMs() - this.#startedAt >= this.#slowMs) this.#reportOnce();
    this.#pausedAt ??= clockMs();
  }

  #arm(): void {
    if (this.#report !== undefined) return;
    const leftMs = Math.max(0, this.#slowMs - (clockMs() - this.#startedAt));
    this.#due = clockMs() + leftMs;
    this.#timer = setTimeout(() => this.#reportOnce(), leftMs).unref();
  }

  #reportOnce(): void {
    if (this.#report !== undefined) return;
    this.#report = { level: "warning", code: "start.slow", message: this.#message() };
    this.#tell?.(this.#report);
    if (this.#tell === undefined) this.#log?.(this.#report.message);
  }

  #message(): string {
    const now = clockMs();
    const lateMs = now - this.#due;
    const steps = this.#steps.map(
      ({ name, at }, index) => `${name} ${seconds((this.#steps[index + 1]?.at ?? now) - at)}`,
    );
    return [
      `the start has taken ${seconds(now - this.#startedAt)} so far and is at the step: ${this.#steps.at(-1)?.name ?? "nothing"}`,
      `steps: ${steps.join(", ")}`,
      `load ${loadavg()
        .map((load) => load.toFixed(1))
        .join(" ")}`,
      ...(lateMs > this.#slowMs / 5 ? [`the process itself was stopped for ${seconds(lateMs)}`] : []),
      `waiting for: ${counted(process.getActiveResourcesInfo())}`,
      `processes: ${childrenOf(process.pid).join(", ") || "none"}`,
    ].join("; ");
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function counted(names: readonly string[]): string {
  const counts = Map.groupBy(names, (name) => name);
  return [...counts].map(([name, all]) => (all.length === 1 ? name : `${name} ×${all.length}`)).join(", ") || "nothing";
}

/** Running child processes with the state the kernel reports: a sandbox that hangs is visible here. */
function childrenOf(pid: number): readonly string[] {
  const found: string[] = [];
  const pending = children(pid);
  for (let next = pending.shift(); next !== undefined && found.length < MAX_CHILDREN; next = pending.shift()) {
    const [, name, state] = /^\d+ \((.*)\) (\S)/s.exec(read(`/proc/${next}/stat`)) ?? [];
    const at = read(`/proc/${next}/wchan`).trim();
    if (name !== undefined) found.push(`${name} ${next} ${state}${at === "" || at === "0" ? "" : ` in ${at}`}`);
    pending.push(...children(Number(next)));
  }
  return found;
}

function children(pid: number): string[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.flatMap((task) =>
      read(`/proc/${pid}/task/${task}/children`)
        .split(" ")
        .filter((one) => one.trim() !== ""),
    );
  } catch {
    // No /proc here, or it ended meanwhile.
    return [];
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
