// A hop from a looking envelope to `edit` under guards, played by a script: node run.mjs (heddle must be in the PATH,
// or HEDDLE names the program). Nothing can be written before the hop, and the hop is refused until its guards are met.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const here = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), "hop-under-a-guard-"));
const home = join(folder, "home");
const workspace = join(folder, "workspace");
mkdirSync(join(home, "envelopes"), { recursive: true, mode: 0o700 });
mkdirSync(workspace);
copyFileSync(join(here, "look.yaml"), join(home, "envelopes", "look.yaml"));
writeFileSync(join(workspace, "answer.txt"), "4\n");
writeFileSync(join(workspace, "test.sh"), '[ "$(cat answer.txt)" = 5 ]\n');

const heddle = (...args) => {
  const env = { ...process.env, HEDDLE_HOME: home };
  return execFileSync(process.env.HEDDLE ?? "heddle", args, { cwd: workspace, env, encoding: "utf8" });
};
const lines = (text) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

try {
  const script = join(here, "script.json");
  const [started] = lines(
    heddle("exec", "--json", "--skip-git-repo-check", "--envelope", "look", "--script", script, "fix the answer"),
  );
  const events = lines(heddle("threads", "show", started.thread_id, "--json")).map(({ body }) => body);
  const path = events.filter(({ type }) => type === "envelope.entered").map(({ envelope }) => envelope.id);
  const refused = events.filter(({ type }) => type === "envelope.hop-refused").map(({ failure }) => failure.code);
  const [, entered] = events.filter(({ type }) => type === "envelope.entered");
  assert.deepEqual(path, ["look", "edit"]);
  assert.deepEqual(refused, ["hop.guard-failed"]);
  assert.deepEqual(
    entered.hop.guards.map(({ kind, isMet }) => [kind, isMet]),
    [
      ["outcome", true],
      ["command", true],
    ],
  );
  assert.equal(readFileSync(join(workspace, "answer.txt"), "utf8"), "5\n");
  console.log(
    `${path.join(" -> ")}; refused before: ${refused.join(", ")}; carried: ${JSON.stringify(entered.hop.carry)}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
