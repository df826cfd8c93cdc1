/** The dashboard in a real Chromium: measured by a program of its own, which the tests of the page share their stage with. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

export interface PageFigures {
  readonly firstLoadKb: number;
  readonly openMs: number;
  readonly openCpuMs: number;
  readonly scrollFrameMs: number;
  readonly deltasPerSecond: number;
  readonly deltaFrameMs: number;
  readonly deltaCpuPercent: number;
  readonly memoryMb: number;
  readonly diffCpuMs: number;
  readonly tasksCpuMs: number;
}

const PROGRAM = path.join(import.meta.dirname, "..", "e2e", "browser", "measure-page.ts");
const DEADLINE_MS = 600_000;

export async function measurePage(): Promise<PageFigures> {
  const args = ["--conditions=heddle-source", PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: DEADLINE_MS });
  const figures: PageFigures = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  return figures;
}
