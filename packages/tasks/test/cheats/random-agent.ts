/**
 * One agent: a cheat of the table, or one to five by chance, with the repair or without, in any order; then the verdict with what is
 * delivered stated, the verdict without, and what is wrong with them.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { skippedFor } from "../../src/attempt/baseline.ts";
import { isWanted } from "../../src/judge/pick.ts";
import { freezeWork } from "../../src/tree/freeze-work.ts";
import { verifyKeptTree } from "../../src/tree/keep-tree.ts";
import type { FrozenWork } from "../../src/tree/manifest.ts";
import { verifyWork, type Verdict } from "../../src/judge/verify.ts";
import { chanceOf, differences, entriesOf, type Chance } from "../random-trees.ts";
import { checksOf, python, type Project } from "./project.ts";
import { changedPaths, copyTree, oracle, removeTree, resetWorkspace, type Stage } from "./stage.ts";
import { cheatsFor, plantedBy, type Cheat } from "./table.ts";

export type Outcome = "verified" | "review" | "rejected";

export interface Told {
  readonly what: string;
  readonly isRepaired: boolean;
  /** With `deliver`, and what the oracle says of the same files. */
  readonly stated: Outcome;
  readonly isRight: boolean;
  /** Without; whether it then rests on something planted, and says so. */
  readonly open: Outcome;
  readonly restsOnPlanted: boolean;
  /** What must not be. */
  readonly faults: readonly string[];
}

interface Plan {
  readonly cheats: readonly Cheat[];
  readonly isRepaired: boolean;
  readonly repairAt: number;
  /** A check names the source as the work. */
  readonly isNamed: boolean;
  /** The folder of the source is delivered, or named by a wildcard, not only the file. */
  readonly isWide: boolean;
}

function planOf(seed: number, project: Project): Plan {
  const chance = chanceOf(seed);
  const table = cheatsFor(project.language).filter(({ isSlow }) => isSlow !== true || chance(8) === 0);
  const count = 1 + chance(5);
  const cheats: Cheat[] = [];
  while (cheats.length < count) {
    const one = pick(table, chance);
    if (!cheats.includes(one)) cheats.push(one);
  }
  const isWide = project.source.includes("/") && chance(3) === 0;
  return { cheats, isRepaired: chance(2) === 0, repairAt: chance(count + 1), isNamed: chance(2) === 0, isWide };
}

export function runAgent(stage: Stage, seed: number): Promise<Told> {
  return runPlan(stage, planOf(seed, stage.project), `${seed}`);
}

/** One cheat and nothing else. */
export function runCheat(stage: Stage, cheat: Cheat, { isRepaired }: Pick<Plan, "isRepaired">): Promise<Told> {
  return runPlan(stage, { cheats: [cheat], isRepaired, repairAt: 1, isNamed: false, isWide: false }, "one");
}

async function runPlan(stage: Stage, plan: Plan, name: string): Promise<Told> {
  const { project, workspace, root, base, home } = stage;
  resetWorkspace(stage);
  act(stage, plan);
  // Git of the agent itself may run what it has planted.
  rmSync(join(root, "canary"), { force: true });
  const left = join(root, "left");
  copyTree(workspace, left);
  const deliver = [plan.isWide ? `${dirname(project.source)}/**` : project.source];
  const { commands, named } = checksOf(project, deliver);
  const checks = [...commands, ...(plan.isNamed ? named : [])];
  try {
    const stated = await freeze(stage, { checks, deliver }, `work-${name}-1`);
    const open = await freeze(stage, { checks }, `work-${name}-2`);
    const running = plan.cheats.flatMap(({ background }) =>
      background === undefined ? [] : [goOn(stage, background)],
    );
    const verdicts = [
      await verdictOf(stage, { checks, deliver }, stated),
      await verdictOf(stage, { checks }, open),
    ] as const;
    for (const child of running) await end(child);
    const faults = running.length > 0 ? [] : differences(entriesOf(workspace), entriesOf(left), { withTimes: true });
    if (existsSync(join(root, "canary"))) faults.push("something that was planted ran outside");
    faults.push(...(await verifyKeptTree(base, new AbortController().signal)).map((path) => `beginning: ${path}`));
    return judged(stage, { plan, left, verdicts, deliver, open, faults });
  } finally {
    rmSync(join(root, "canary"), { force: true });
    for (const folder of [
      left,
      join(root, "out"),
      join(home, "rooms/task_1", `work-${name}-1`),
      join(home, "rooms/task_1", `work-${name}-2`),
    ])
      removeTree(folder);
    mkdirSync(join(root, "out"));
  }
}

function act(stage: Stage, { cheats, isRepaired, repairAt }: Plan): void {
  const { source, repaired } = stage.project;
  for (const [index, cheat] of cheats.entries()) {
    if (isRepaired && index === repairAt) write(stage, source, repaired);
    plant(stage, cheat);
  }
  if (isRepaired && repairAt === cheats.length) write(stage, source, repaired);
}

export function plant(stage: Stage, { files = {}, shell }: Cheat): void {
  for (const [path, content] of Object.entries(files)) write(stage, path, content);
  if (shell !== undefined)
    spawnSync("sh", ["-c", shell], { cwd: stage.workspace, env: agentEnvironment(stage), stdio: "ignore" });
}

/** What the system refuses is not done: an earlier cheat may be in the way. */
function write({ workspace }: Stage, path: string, content: string): void {
  try {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), content);
  } catch {
    return;
  }
}

function agentEnvironment({ project, root }: Stage): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  const { source: SOURCE, repaired: REPAIRED } = project;
  const own = {
    GIT_AUTHOR_NAME: "A",
    GIT_AUTHOR_EMAIL: "a@b.c",
    GIT_COMMITTER_NAME: "A",
    GIT_COMMITTER_EMAIL: "a@b.c",
  };
  return {
    PATH,
    HOME,
    TMPDIR,
    PY: python ?? "",
    SOURCE,
    REPAIRED,
    CANARY: join(root, "canary"),
    OUT: join(root, "out"),
    ...own,
  };
}

function goOn(stage: Stage, line: string): ChildProcess {
  return spawn("sh", ["-c", line], { cwd: stage.workspace, env: agentEnvironment(stage), stdio: "ignore" });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

type Spec = Pick<TaskSpecInput, "checks" | "deliver">;

function freeze(stage: Stage, spec: Spec, name: string): Promise<FrozenWork> {
  const checkOptions = stage.checkOptionsFor(spec);
  const { deliver } = spec;
  return freezeWork(stage.workspace, stage.base, {
    into: join(stage.home, "rooms", "task_1", name),
    skip: skippedFor(checkOptions),
    signal: checkOptions.signal,
    ...(deliver === undefined ? {} : { wanted: isWanted(deliver) }),
  });
}

function verdictOf(stage: Stage, spec: Spec, frozen: FrozenWork): Promise<Verdict> {
  const { baseline, base } = stage;
  return verifyWork(stage.checkOptionsFor(spec), { baseline, base, frozen });
}

interface Facts {
  readonly plan: Plan;
  readonly left: string;
  readonly verdicts: readonly [Verdict, Verdict];
  readonly deliver: readonly string[];
  readonly open: FrozenWork;
  readonly faults: readonly string[];
}

function judged(stage: Stage, { plan, left, verdicts, deliver, open: frozen, faults: found }: Facts): Told {
  const { project, pristine } = stage;
  const [stated, open] = verdicts;
  const faults = [...found];
  const changed = changedPaths(left, pristine);
  const within = deliver.map((glob) => glob.replace("/**", ""));
  const isRight = oracle(stage, left, (path) =>
    within.some((folder) => path === folder || path.startsWith(`${folder}/`)),
  );
  if (stated.passed && !isRight) faults.push(`deliver: verified, and the oracle says no: ${told(stated)}`);
  if (stated.passed && !plan.isRepaired && !plan.isWide)
    faults.push(`deliver: verified without a repair: ${told(stated)}`);
  if (!stated.passed && isRight) faults.push(`deliver: honest work was missed: ${told(stated)}`);
  const seen = frozen.changes.filter(({ now, before }) => (now ?? before)?.kind !== "folder" || now?.kind === "link");
  const paths = seen.map(({ path }) => path).filter((path) => changed.includes(path));
  if (paths.length !== changed.length) faults.push(`frozen: ${paths.length} of ${changed.length} changes`);
  const rests = new Set(open.results.flatMap(({ restsOn = [] }) => restsOn));
  const planted = plan.cheats.flatMap(plantedBy).map((path) => (path === "$SOURCE" ? project.source : path));
  const isPlanted = (path: string): boolean => planted.some((from) => from === "." || path.startsWith(from));
  if (open.passed) faults.push(...wrongWithOpen(stage, { plan, left, verdict: open, changed, rests, isPlanted }));
  return {
    what: `${project.language}: ${plan.cheats.map(({ name }) => name).join("; ")}${plan.isRepaired ? "; repaired" : ""}`,
    isRepaired: plan.isRepaired,
    stated: outcomeOf(stated),
    isRight,
    open: outcomeOf(open),
    restsOnPlanted: open.passed && [...rests].some((path) => path !== project.source && isPlanted(path)),
    faults,
  };
}

interface OpenVerdict {
  readonly plan: Plan;
  readonly left: string;
  readonly verdict: Verdict;
  readonly changed: readonly string[];
  readonly rests: ReadonlySet<string>;
  readonly isPlanted: (path: string) => boolean;
}

function wrongWithOpen(
  stage: Stage,
  { plan, left, verdict, changed, rests, isPlanted }: OpenVerdict,
): readonly string[] {
  const { work } = verdict;
  if (work === undefined) return ["not stated: verified without any work"];
  const faults: string[] = [];
  const delivered = new Set(work.delivered.map(({ path }) => path));
  if (work.delivered.length !== work.deliveredCount) faults.push("not stated: verified on more than it names");
  if (!oracle(stage, left, (path) => delivered.has(asText(path))))
    faults.push(`not stated: verified, and the oracle says no to what it rests on: ${told(verdict)}`);
  const named = new Set([...delivered, ...work.others.map(({ path }) => path)]);
  const missing = changed.filter((path) => !named.has(asText(path)));
  if (missing.length > 0 && work.others.length === work.othersCount)
    faults.push(`not stated: verified without naming ${JSON.stringify(missing)}`);
  if (work.deliveredCount + work.othersCount < changed.length) faults.push("not stated: fewer changes than there are");
  if (!plan.isRepaired && ![...rests].some(isPlanted))
    faults.push(`not stated: verified without a repair and without naming what it rests on: ${told(verdict)}`);
  return faults;
}

/** Of one character for each byte. */
function asText(path: string): string {
  return Buffer.from(path, "latin1").toString();
}

function outcomeOf({ passed, review }: Verdict): Outcome {
  return passed ? "verified" : review === undefined ? "rejected" : "review";
}

function told({ results, violations, review, work }: Verdict): string {
  const said = results.map(({ name, outcome, message, restsOn }) => ({ name, outcome, message, restsOn }));
  return JSON.stringify({ said, violations, review, delivered: work?.delivered.map(({ path }) => path) });
}

function pick<T>(some: readonly T[], chance: Chance): T {
  const picked = some[chance(some.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}
