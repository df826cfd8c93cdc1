/** The demo's small git repository: a function with a real bug and a real test that fails because of it. */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

export const SOURCE_FILE = "src/duration.mjs";
export const TEST_FILE = "test/duration.test.mjs";

/** Waits for an answer that never comes. */
export const ASKING_SCRIPT = "scripts/release.sh";

/** Works with every Node from 20 on, needs no package and no network. */
export const TEST_COMMAND = `node --test --test-reporter=tap ${TEST_FILE}`;

/** The same words a user would write into a file. */
export function demoTask(sandbox: string): string {
  return `name: fix the test
workspace: .
goal: The test in ${TEST_FILE} fails. Find out why and fix the code. Do not change the test.
sandbox: ${sandbox}
checks:
  - name: the test passes
    tests: ${TEST_COMMAND}
  - name: the code has changed
    changed: [${SOURCE_FILE}]
stall: { after: 2s, action: kill-child }
budget: { time: 10m, turns: 6 }
`;
}

export const BUGGY_LINE = "  const seconds = total % 3600;";
export const FIXED_LINE = "  const seconds = total % 60;";

const FILES: Readonly<Record<string, string>> = {
  [SOURCE_FILE]: `/** Seconds as h:mm:ss. */
export function formatDuration(total) {
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor((total % 3600) / 60);
${BUGGY_LINE}
  return [hours, pad(minutes), pad(seconds)].join(":");
}

function pad(number) {
  return String(number).padStart(2, "0");
}
`,
  [TEST_FILE]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration } from "../src/duration.mjs";

test("short durations keep their leading zeros", () => {
  assert.equal(formatDuration(5), "0:00:05");
});

test("minutes and seconds are split", () => {
  assert.equal(formatDuration(75), "0:01:15");
});

test("hours are counted", () => {
  assert.equal(formatDuration(3_605), "1:00:05");
});
`,
  [ASKING_SCRIPT]: `printf 'Release this? [y/N] '
read -r answer
`,
  "README.md": "# duration\n\nFormats seconds. Made by `heddle demo`; delete it whenever you like.\n",
};

export async function makeWorkspace(folder: string): Promise<void> {
  for (const [name, content] of Object.entries(FILES)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
  await git(folder, "init", "--quiet", "--initial-branch=main");
  await git(folder, "add", "--all");
  await git(folder, "commit", "--quiet", "--message=A function with a bug");
}

/** A new machine has no git identity, and the user's own hooks have no business here. */
async function git(folder: string, ...args: string[]): Promise<void> {
  const settings = [
    "user.name=Heddle demo",
    "user.email=demo@localhost",
    "core.hooksPath=/dev/null",
    "commit.gpgSign=false",
  ];
  await promisify(execFile)("git", [...settings.flatMap((setting) => ["-c", setting]), ...args], { cwd: folder });
}
