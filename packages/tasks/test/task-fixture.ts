/** A real workspace with a task's spec, and ways to do to it what an agent does. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execFileSync } from "node:child_process";
import type { CheckResult, TaskBaseline } from "@heddle/protocol";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";
import { runChecks, takeBaseline } from "../src/attempt/baseline.ts";
import type { CheckOptions } from "../src/checks/check.ts";
import { readBase } from "../src/judge/freeze-claim.ts";
import { freezeWork } from "../src/tree/freeze-work.ts";
import { unjudged, verifyWork, workspaceFault, type Verdict } from "../src/judge/verify.ts";

export interface TaskFixtureOptions {
  readonly files?: Readonly<Record<string, string>>;
  readonly checks?: TaskSpecInput["checks"];
  readonly spec?: Partial<TaskSpecInput>;
  /** A repository with one commit of the files. */
  readonly git?: true;
  readonly env?: NodeJS.ProcessEnv;
}

export interface TaskFixture extends AsyncDisposable {
  readonly root: string;
  readonly workspace: string;
  readonly checkOptions: CheckOptions;
  write(path: string, content: string): Promise<void>;
  remove(path: string): Promise<void>;
  git(...args: string[]): string;
  /** Stops what is running. */
  stop(): void;
  runChecks(): Promise<readonly CheckResult[]>;
  takeBaseline(): Promise<TaskBaseline>;
  /** Freezes what is there now, and judges that. */
  verify(baseline: TaskBaseline, accepted?: readonly string[]): Promise<Verdict>;
}

export async function openTaskFixture(options: TaskFixtureOptions = {}): Promise<TaskFixture> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "heddle-work-")));
  const workspace = join(root, "workspace");
  const home = join(root, "home");
  await mkdir(workspace);
  await mkdir(home);
  await writeFile(join(home, "secret.txt"), "a key nobody may see\n");
  const control = new AbortController();
  let rounds = 0;
  const spec = TaskSpec.parse({ name: "a task", workspace, goal: "do it", checks: options.checks, ...options.spec });
  const checkOptions: CheckOptions = {
    folder: workspace,
    home,
    spec,
    signal: control.signal,
    ...(options.env === undefined ? {} : { env: options.env }),
  };
  const opened: TaskFixture = {
    root,
    workspace,
    checkOptions,
    async write(path, content) {
      await mkdir(dirname(join(workspace, path)), { recursive: true });
      await writeFile(join(workspace, path), content);
    },
    remove: (path) => rm(join(workspace, path), { recursive: true }),
    git: (...args) =>
      execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.org", ...args], {
        cwd: workspace,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      }),
    stop: () => control.abort(),
    runChecks: () => runChecks(checkOptions),
    takeBaseline: () => takeBaseline(checkOptions, { into: join(home, "rooms", "task_1", "base") }),
    async verify(baseline, accepted) {
      const fault = await workspaceFault(workspace, baseline);
      if (fault !== undefined) return unjudged(checkOptions, fault.message, [fault]);
      const base = await readBase(home, { id: "task_1" }, baseline);
      rounds += 1;
      const frozen = await freezeWork(workspace, base, {
        into: join(home, "rooms", "task_1", `work-${rounds}`),
        skip: [home],
        signal: control.signal,
      });
      return await verifyWork(checkOptions, { baseline, base, frozen, accepted });
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
  for (const [path, content] of Object.entries(options.files ?? {})) await opened.write(path, content);
  if (options.git === true) {
    opened.git("init", "-q", "-b", "main");
    opened.git("add", "-A");
    opened.git("commit", "-q", "--allow-empty", "-m", "start");
  }
  return opened;
}

/** The whole path: as it was, what the agent does, the verdict. */
export async function judge(options: TaskFixtureOptions, work: (fixture: TaskFixture) => unknown): Promise<Verdict> {
  await using fixture = await openTaskFixture(options);
  const baseline = await fixture.takeBaseline();
  await work(fixture);
  return await fixture.verify(baseline);
}

/** Outcome of each check of a workspace as it is. */
export async function outcomesOf(options: TaskFixtureOptions): Promise<readonly string[]> {
  await using fixture = await openTaskFixture(options);
  return (await fixture.runChecks()).map(({ outcome }) => outcome);
}
