/** The dashboard in a real Chromium: measured by a program of its own, which the tests of the page share their stage with. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

export interface PageFigures {
  readonly firstLoadKb: number;
  /** From a click to the first step on the screen, of a run of 10,000 steps that the browser has seen nothing of. */
  readonly openMs: number;
  readonly openCpuMs: number;
  readonly scrollFrameMs: number;
  readonly deltasPerSecond: number;
  readonly deltaFrameMs: number;
  /** Of the time that the stream took, how much the page computed. */
  readonly deltaCpuPercent: number;
  readonly memoryMb: number;
  /** Of 10,000 tasks, the first page. */
  readonly tasksCpuMs: number;
  /** Of a file of 20,000 changed lines, opened where it is folded. */
  readonly diffCpuMs: number;
}

const PROGRAM = path.join(import.meta.dirname, "..", "e2e", "browser", "measure-page.ts");
const DEADLINE_MS = 600_000;

export async function measurePage(): Promise<PageFigures> {
  const args = ["--conditions=heddle-source", PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: DEADLINE_MS });
  const figures: PageFigures = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  return figures;
}
