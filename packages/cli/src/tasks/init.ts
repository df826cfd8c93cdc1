/** The first task of a user: its checks are those of the project it is written for, its goal is the user's. */
import { writeFile, readFile } from "node:fs/promises";
import path from "node:path";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { deliverLine, PLACEHOLDER, proposeDeliver, readSpec } from "@heddle/tasks";
import { DEFAULT_FILE } from "./read-tasks.ts";

const MAX_NAME = 60;

interface Parts {
  readonly goal: string;
  readonly tests: string | undefined;
  readonly deliver: readonly string[] | undefined;
}

function template({ goal, tests, deliver }: Parts): string {
  return `# A task of Heddle: what is to be done, and the checks that decide whether it is.
# Every key: heddle schema task

name: ${JSON.stringify(goal === PLACEHOLDER.goal ? "first task" : nameOf(goal))}
workspace: . # relative to this file

goal: |
${goal.replaceAll(/^(?=.)/gm, "  ")}

# What decides. Heddle runs these itself when the agent says that it is done; all must pass, and at least one
# must fail before the work. A task without checks can only be claimed, never verified.
checks:
  - changed: ["**"] # some file is not as it was
  ${tests === undefined ? "# - tests: npm test # no tests were found here; name the command that runs yours" : `- ${tests}`}
  # - command: npm run lint
  # - file-exists: docs/usage.md
  # - contains: { path: docs/usage.md, text: "## " }

# What the agent is to change: only these files are judged, and kept as the work. Without it Heddle names what
# the verdict rests on, and asks you where that is a file no check names.
${deliver === undefined ? "# deliver: [src/**]" : deliverLine(deliver)}

# setup: { run: npm ci, makes: [node_modules/**] } # before the checks; makes: what it makes of the agent's files

# steps: # told to the agent, shown as progress
#   - Look at the code
#   - { title: Write it down, acceptance: [every command in it was tried] }

# model: gpt-5.5 # default: that of config.toml
# sandbox: workspace-write # read-only, workspace-write, danger-full-access
# envelope: explore # what the agent may do, by name; heddle envelopes lists them
# hops: [edit, test] # envelopes that it goes through after it, each when it is done in the one before
# network: false
# protect: ["docs/**"] # the agent must leave these as they are

# schedule: 1d # or { cron: "0 9 * * 1-5", time_zone: Europe/Berlin }, or a date and time
# depends_on: [another task]
# worktree: true # in a git worktree of its own
# apply: on-verified # your folder is touched only with work that is verified
# labels: [docs]

budget: { time: 30m, turns: 6 } # reached: paused; heddle task resume continues
`;
}

/** The path it was written to, as it is to be shown. Nothing is overwritten. */
export async function initTask(
  given: { readonly path: string | undefined; readonly goal: string },
  cwd: string,
): Promise<string> {
  const name = given.path ?? DEFAULT_FILE;
  const file = path.resolve(cwd, name);
  const goal = given.goal.trim() === "" ? PLACEHOLDER.goal : given.goal.trim();
  try {
    await writeFile(file, await templateFor(goal, path.dirname(file)), { flag: "wx" });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const why =
      code === "EEXIST"
        ? "exists already and is left as it is; write another with --path FILE"
        : `could not be written: ${reasonOf(error)}`;
    throw new HeddleError("usage.invalid", `${name} ${why}`, { cause: error });
  }
  return name;
}

async function templateFor(goal: string, folder: string): Promise<string> {
  const tests = await findTests(folder);
  const text = `workspace: .\nname: n\ngoal: ${JSON.stringify(goal === PLACEHOLDER.goal ? "g" : goal)}\nchecks: [{ ${tests ?? ""} }]\n`;
  const spec = tests === undefined ? undefined : readSpec({ file: DEFAULT_FILE, text, folder }).specs[0];
  return template({ goal, tests, deliver: spec === undefined ? undefined : await proposeDeliver(spec) });
}

function nameOf(goal: string): string {
  const line = goal.split("\n", 1)[0] ?? "";
  return line.length <= MAX_NAME ? line : `${line.slice(0, MAX_NAME).replace(/\s+\S*$/, "")} …`;
}

/** As a line of `checks`; undefined: no tests were found. */
export async function findTests(folder: string): Promise<string | undefined> {
  const read = (name: string): Promise<string | undefined> =>
    readFile(path.join(folder, name), "utf8").catch(() => undefined);
  for (const [name, checkIn] of PROJECT_FILES) {
    const text = await read(name);
    const check = text === undefined ? undefined : await checkIn(text, read);
    if (check !== undefined) return check;
  }
  return undefined;
}

type Read = (name: string) => Promise<string | undefined>;

const PROJECT_FILES: readonly (readonly [string, (text: string, read: Read) => Promise<string | undefined>])[] = [
  ["package.json", nodeTests],
  ["pyproject.toml", pythonTests],
  ["setup.py", pythonTests],
  ["pytest.ini", async () => PYTEST],
  ["Cargo.toml", async () => "tests: cargo test"],
  ["go.mod", async () => "tests: go test -v ./..."],
  ["Makefile", async (text) => (/^test:/m.test(text) ? "command: make test" : undefined)],
];

/** What `npm init` writes as the test of a project that has none. */
const NO_TEST = "no test specified";
const PYTEST = "tests: python3 -m pytest";

async function nodeTests(text: string, read: Read): Promise<string | undefined> {
  const test = testScript(text);
  if (test === undefined || test.includes(NO_TEST)) return undefined;
  if ((await read("pnpm-lock.yaml")) !== undefined) return "tests: pnpm test";
  return (await read("yarn.lock")) === undefined ? "tests: npm test" : "tests: yarn test";
}

function testScript(text: string): string | undefined {
  try {
    const test: unknown = JSON.parse(text)?.scripts?.test;
    return typeof test === "string" ? test : undefined;
  } catch {
    return undefined;
  }
}

async function pythonTests(text: string, read: Read): Promise<string> {
  const usesPytest = text.includes("pytest") || (await read("conftest.py")) !== undefined;
  return usesPytest ? PYTEST : "tests: python3 -m unittest";
}
