/**
 * The rooms that checks run in: opening one over a large tree, with many changes, and what a check costs more inside than
 * without any sandbox. In processor time and in turns, so that a busy machine strikes both sides alike.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CappedOutput, commandEnvironment, openUnconfined, startCommand, type Sandbox } from "@heddle/tools";
import { openRoom } from "@heddle/tools/room";

const FILES = 50_000;
const FOLDERS = 500;
const CHANGED = 1000;
const LOADED = 2000;
const ROUNDS = 9;
const DEADLINE_MS = 60_000;

interface RoomFigures {
  readonly openMs: number[];
  readonly layerMs: number[];
  readonly computingRatios: number[];
  readonly loadingRatios: number[];
  readonly readingRatios: number[];
}

export async function measureRooms(root: string): Promise<RoomFigures> {
  const [base, work, workspace] = [join(root, "room-base"), join(root, "room-work"), join(root, "room-workspace")];
  const paths = Array.from({ length: CHANGED }, (_, index) => fileOf(index));
  await fill(base, FILES);
  await fill(work, CHANGED);
  await fill(workspace, LOADED);
  const policy = { workspace, writeRoots: [workspace], masked: [], network: "none" } as const;
  const open = (changed: readonly string[]): ReturnType<typeof openRoom> =>
    openRoom({ policy, lower: [base], layer: { folder: work, paths: changed, removed: [] } });
  const figures: RoomFigures = { openMs: [], layerMs: [], computingRatios: [], loadingRatios: [], readingRatios: [] };
  // The first one of a process tries out what the host can do.
  await using _first = await open([]);
  for (let round = 0; round < ROUNDS; round += 1) {
    const empty = await timed(() => open([]));
    figures.openMs.push(empty);
    figures.layerMs.push((await timed(() => open(paths))) - empty);
    await using room = await open(paths);
    const sides = [room.sandbox, openUnconfined(policy)] as const;
    figures.computingRatios.push(await ratioOf(COMPUTING, { sides, cwd: workspace, round }));
    figures.loadingRatios.push(await ratioOf(LOADING, { sides, cwd: workspace, round }));
    figures.readingRatios.push(await ratioOf(READING, { sides, cwd: workspace, round }));
  }
  return figures;
}

export function fileOf(index: number): string {
  return `d${index % FOLDERS}/f${index}.js`;
}

export async function fill(folder: string, files: number): Promise<void> {
  for (let index = 0; index < FOLDERS; index += 1) await mkdir(join(folder, `d${index}`), { recursive: true });
  for (let index = 0; index < files; index += 1) {
    await writeFile(join(folder, fileOf(index)), `export const value = ${index};\n`);
  }
}

async function timed(work: () => Promise<AsyncDisposable>): Promise<number> {
  const start = performance.now();
  await using _opened = await work();
  return performance.now() - start;
}

const TOLD = "const { user, system } = process.cpuUsage(); console.log(user + system);";

/** Loads 300 modules, computes for a while and writes a report, as a test run does. */
const COMPUTING = `
const { writeFileSync } = await import("node:fs");
let sum = 0;
for (let index = 0; index < 300; index += 1) sum += (await import(process.cwd() + "/d" + index + "/f" + index + ".js")).value;
for (let index = 0; index < 3e8; index += 1) sum = (sum * 31 + index) | 0;
writeFileSync("report.txt", String(sum));
${TOLD}`;

/** Does nothing but load modules of one line. */
const LOADING = `
for (let index = 0; index < ${LOADED}; index += 1) await import(process.cwd() + "/d" + (index % ${FOLDERS}) + "/f" + index + ".js");
${TOLD}`;

/** The worst there is: opens and reads small files, and does nothing with them. */
const READING = `
const { readFileSync } = await import("node:fs");
for (let index = 0; index < 10 * ${LOADED}; index += 1)
  readFileSync("d" + (index % ${FOLDERS}) + "/f" + (index % ${LOADED}) + ".js");
${TOLD}`;

interface Sides {
  /** Inside and outside. */
  readonly sides: readonly [Sandbox, Sandbox];
  readonly cwd: string;
  readonly round: number;
}

/** Each side comes first as often as last. */
async function ratioOf(check: string, { sides: [inside, outside], cwd, round }: Sides): Promise<number> {
  if (round % 2 === 0) {
    const first = await checkCpu(check, inside, cwd);
    return first / (await checkCpu(check, outside, cwd));
  }
  const first = await checkCpu(check, outside, cwd);
  return (await checkCpu(check, inside, cwd)) / first;
}

async function checkCpu(check: string, sandbox: Sandbox, cwd: string): Promise<number> {
  const output = new CappedOutput();
  await using command = await startCommand({
    sandbox,
    argv: [process.execPath, "--input-type=module", "-e", check],
    cwd,
    env: commandEnvironment(process.env),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const { exitCode } = await command.exited;
  await output.close();
  const { text } = output.snapshot();
  if (exitCode !== 0) throw new Error(`the check ended with ${exitCode}: ${text}`);
  return Number(text.trim().split("\n").at(-1));
}
