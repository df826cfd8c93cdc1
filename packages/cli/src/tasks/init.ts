/** The first task of a user: valid as it is, and with every key that is wanted sooner or later. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { DEFAULT_FILE } from "./read-tasks.ts";

const TEMPLATE = `# A task of Heddle: what is to be done, and the checks that decide whether it is.
# Next: heddle task lint FILE, then heddle task run FILE. Every key: docs/use/tasks.md

name: describe the project
workspace: . # relative to this file

goal: |
  Write README.md: what this project is for, and how to start it.
  Look at the code before you write; say nothing that is not so.

# What decides. A task without checks can only be claimed, never verified.
checks:
  - file-exists: README.md
  - contains: { path: README.md, text: "## " }
  # - tests: npm test # counts them too: fewer tests than before do not pass
  # - command: npm run lint
  # - changed: ["src/**"]
  # - git: { clean: true }

# What the agent is hired to change: only these files are judged, and kept as the work. Without it Heddle
# names what the verdict rests on, and asks you where that is a file no check names. For code: deliver: [src/**]
deliver: [README.md]

# steps: # told to the agent, shown as progress
#   - Look at the code
#   - { title: Write it down, acceptance: [every command in it was tried] }

# model: gpt-5.5 # that of config.toml unless said
# sandbox: workspace-write # read-only, workspace-write, danger-full-access
# network: false
# protect: ["docs/**"] # the agent must leave these as they are

# schedule: 1d # or { cron: "0 9 * * 1-5", time_zone: Europe/Berlin }, or a date and time
# depends_on: [another task]
# worktree: true # in a git worktree of its own
# apply: on-verified # your folder is touched only with work that is verified
# labels: [docs]

budget: { time: 30m, turns: 6 } # reached: paused, and heddle task resume goes on
`;

/** The path it was written to, as it is to be shown. Nothing is overwritten. */
export async function initTask(given: string | undefined, cwd: string): Promise<string> {
  const name = given ?? DEFAULT_FILE;
  const file = path.resolve(cwd, name);
  try {
    await writeFile(file, TEMPLATE, { flag: "wx" });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const why =
      code === "EEXIST"
        ? "exists already and is left as it is; write another with --path FILE"
        : `could not be written: ${error instanceof Error ? error.message : String(error)}`;
    throw new HeddleError("usage.invalid", `${name} ${why}`, { cause: error });
  }
  return name;
}
