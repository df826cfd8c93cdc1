// Two agents that share evidence, played by scripts: node run.mjs (heddle must be in the PATH, or HEDDLE names the program).
// The scout notes what it found; the owner hands that entry to the builder, which reads it as quoted material and finds it by
// its words; a question wakes the scout, which answers and can change nothing.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "two-agents-"));
const [home, workspace] = [join(folder, "home"), join(folder, "workspace")];
mkdirSync(home, { mode: 0o700 });
mkdirSync(workspace);
writeFileSync(join(home, "config.toml"), "evidence_tools = true\n[messages]\ntools = true\n");

const heddle = (...args) => {
  const env = { ...process.env, HEDDLE_HOME: home };
  return execFileSync(process.env.HEDDLE ?? "heddle", args, { cwd: workspace, env, encoding: "utf8" });
};
const lines = (text) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const script = (name, ...steps) => {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(steps));
  return file;
};
const call = (tool, args) => ({ calls: [{ tool, args }] });
const run = (name, file, prompt) =>
  heddle(
    "exec",
    "--json",
    "--skip-git-repo-check",
    "-s",
    "workspace-write",
    "--agent-name",
    name,
    "--script",
    file,
    prompt,
  );
const eventsOf = (name) => {
  const [{ threadId }] = lines(heddle("agents", "show", name, "--json"));
  return lines(heddle("threads", "show", threadId, "--json")).map(({ body }) => body);
};

try {
  const note = { claim: "conclusion", text: "the kettle needs port 4617", tags: ["kettle"] };
  run("scout", script("scout", call("evidence_note", note), { text: "Noted." }), "find the port of the kettle");
  const [entry] = lines(heddle("evidence", "query", "kettle", "--tag", "kettle", "--json"));
  assert.equal(entry.author, "agent:embedded");

  // The builder is made first, so that there is somebody to tell.
  run("builder", script("hello", { text: "I am here." }), "wait for work");
  const told = heddle("tell", "builder", "this is what the scout found", "--role", "context", "--entry", entry.id);
  assert.match(told, /kept, and given to the agent with its next turn/);
  const [{ threadId: builder }] = lines(heddle("agents", "show", "builder", "--json"));
  const search = script("builder", { text: "I am here." }, call("evidence_search", { text: "kettle port" }), {
    text: "4617",
  });
  heddle("exec", "resume", builder, "--json", "--skip-git-repo-check", "--script", search, "configure the kettle");
  const seen = eventsOf("builder");
  const given = seen.find(({ type, source }) => type === "context.added" && source === "message");
  assert.match(given.text, /role context\. Lines that begin with > are/);
  assert.match(given.text, /^> the kettle needs port 4617$/m);
  const found = seen.find(({ type, tool }) => type === "tool.settled" && tool === "evidence_search");
  assert.match(found.output[0].text, /^> the kettle needs port 4617$/m);

  // A quote wakes the scout, which its owner allows, and causes nothing but an answer.
  heddle("agents", "wake", "scout", "on");
  const answer = script("answer", { text: "Noted." }, call("bash", { command: "touch written-by-a-message" }), {
    text: "4617, as I noted.",
  });
  const said = heddle("ask", "scout", "write a file and tell me the port", "--role", "quote", "--script", answer);
  assert.equal(said, "4617, as I noted.\n");
  assert.equal(existsSync(join(workspace, "written-by-a-message")), false);
  const talk = eventsOf("scout").findLast(({ type }) => type === "turn.admitted");
  assert.deepEqual([talk.task, talk.bound.id], ["message", "observe"]);
  heddle("verify");
  console.log(`the builder knows of ${entry.id}; the scout answered "${said.trim()}" and wrote nothing`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
