/** One run of a program, seen from outside: wall time, CPU of its tree, peak memory, and what the model server saw when. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";

const DEADLINE_MS = 120_000;
const SAMPLE_MS = 5;

export interface Run {
  readonly wallMs: number;
  /** User and system time of the program and all it waited for. */
  readonly cpuMs: number;
  /** Highest resident memory of the main process. */
  readonly peakKb: number;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export async function measure(argv: readonly string[], options: RunOptions): Promise<Run> {
  const startedAt = performance.now();
  // `times` of POSIX sh tells the CPU time of children that were waited for; Node has no such call.
  const child = spawn("/bin/sh", ["-c", '"$@" >/dev/null 2>&3; code=$?; times; exit $code', "sh", ...argv], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...options.env },
    stdio: ["ignore", "pipe", "inherit", "pipe"],
    timeout: DEADLINE_MS,
  });
  const [, printer, , complainer] = child.stdio;
  const [printed, complained, peakKb, [code]] = await Promise.all([
    readAll(printer),
    readAll(complainer),
    samplePeak(child.pid ?? 0, child),
    once(child, "close"),
  ]);
  const wallMs = performance.now() - startedAt;
  if (code !== 0) throw new Error(`${argv.join(" ")} ended with ${code}\n${complained.slice(-2000)}`);
  return { wallMs, cpuMs: childrenCpuMs(printed), peakKb };
}

async function readAll(stream: unknown): Promise<string> {
  return stream instanceof Readable ? text(stream) : "";
}

/** Second line of `times`: user and system time of the children, as 0m0.123456s. */
function childrenCpuMs(printed: string): number {
  const line = printed.trim().split("\n").at(-1) ?? "";
  const parts = [...line.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, seconds]) => Number(minutes) * 60_000 + Number(seconds) * 1000,
  );
  return parts.reduce((sum, ms) => sum + ms, 0);
}

/** The program is the only child of the shell; its high-water mark is read until it is gone. */
async function samplePeak(shell: number, child: { readonly exitCode: number | null }): Promise<number> {
  let peak = 0;
  while (child.exitCode === null) {
    const [pid] = (await readText(`/proc/${shell}/task/${shell}/children`)).trim().split(" ");
    if (pid !== undefined && pid !== "") {
      const [, kb] = /^VmHWM:\s+(\d+) kB$/m.exec(await readText(`/proc/${pid}/status`)) ?? [];
      peak = Math.max(peak, Number(kb ?? 0));
    }
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
  }
  return peak;
}

async function readText(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

const CALM_WINDOW_MS = 100;
const CALM_TRIES = 50;

/**
 * Waits until the machine has nothing to do: what the program before left behind, on the disk or in processes it does not
 * wait for, is not counted against the next one.
 */
export async function calm(): Promise<void> {
  execFileSync("sync");
  for (let tries = 0; tries < CALM_TRIES; tries += 1) {
    const before = await busyTicks();
    await new Promise((resolve) => setTimeout(resolve, CALM_WINDOW_MS));
    // This process alone needs one.
    if ((await busyTicks()) - before <= 1) return;
  }
}

/** Of all cores since the machine was started, without what they idled and waited for the disk. */
async function busyTicks(): Promise<number> {
  const [first = ""] = (await readFile("/proc/stat", "utf8")).split("\n", 1);
  const ticks = first.split(/\s+/).slice(1).map(Number);
  return ticks.reduce((sum, count) => sum + count, 0) - (ticks[3] ?? 0) - (ticks[4] ?? 0);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low, high] = [sorted[middle - 1], sorted[middle]];
  if (high === undefined) throw new Error("the median of nothing");
  return sorted.length % 2 === 1 || low === undefined ? high : (low + high) / 2;
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}
