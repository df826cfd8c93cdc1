#!/usr/bin/env node
// A bundle that was tampered with is caught by two verifiers that share no code. See README.md beside this file.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const heddle = process.env.HEDDLE ?? join(import.meta.dirname, "../../packages/cli/bin/heddle.cjs");
const tiny = join(import.meta.dirname, "../verify-bundle.mjs");
const folder = mkdtempSync(join(tmpdir(), "heddle-tampered-"));
const env = { ...process.env, HEDDLE_HOME: join(folder, "home") };
const workspace = join(folder, "workspace");
mkdirSync(workspace);

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const sorted = (value) =>
  JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))));

try {
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify([{ text: "The tests fail." }]));
  const run = (...args) => execFileSync(process.execPath, [heddle, ...args], { env, cwd: workspace, encoding: "utf8" });
  const { thread_id: thread } = JSON.parse(
    run("exec", "--json", "--skip-git-repo-check", "--script", script, "run the tests").split("\n")[0],
  );
  const lines = run("threads", "export", thread).trimEnd().split("\n");
  const count = lines.filter((line) => JSON.parse(line).kind === "event").length;

  expect("as it was exported", lines, "clean");
  expect(
    "with one word changed",
    lines.map((line) => line.replace("tests fail", "tests pass")),
    "tampered",
  );
  expect("without its fifth event", sealed(lines.filter((line) => !isEvent(line, 5))), "tampered");
  expect("hashed anew", sealed(rehashed(lines, (body) => body.replace("tests fail", "tests pass"))), "tampered");
  expect("cut at its end", sealed(cut(lines, count - 2)), "tampered");
  console.log("every forgery was caught by both");
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Both verifiers say so, or this program fails. */
function expect(what, lines, verdict) {
  const file = join(folder, "bundle.jsonl");
  writeFileSync(file, `${lines.join("\n")}\n`);
  const said = [
    [heddle, "verify", file],
    [tiny, file],
  ].map((args) => spawnSync(process.execPath, args, { env }).status);
  console.log(`${what}: heddle verify ${said[0]}, verify-bundle.mjs ${said[1]}`);
  const code = { clean: 0, tampered: 2 }[verdict];
  if (said.some((status) => status !== code)) throw new Error(`${what}: expected ${verdict} (${code}) of both`);
}

function isEvent(line, version) {
  const { kind, version: own } = JSON.parse(line);
  return kind === "event" && own === version;
}

/** With an end that fits: everything a forger can make without the key. */
function sealed(lines) {
  const rest = lines.slice(0, -1);
  const kinds = rest.map((line) => JSON.parse(line).kind);
  const of = (kind) => kinds.filter((one) => one === kind).length;
  const all = sha256(rest.map((line) => `${line}\n`).join(""));
  const end = { ...JSON.parse(lines.at(-1)), events: of("event"), checkpoints: of("checkpoint"), sha256: all };
  return [...rest, JSON.stringify(end)];
}

/** Every link fits again after a body was changed. */
function rehashed(lines, change) {
  let before;
  return lines.map((line) => {
    const row = JSON.parse(line);
    if (row.kind !== "event") return line;
    const body = change(row.body);
    const { stream, version, id, at, author, type, v } = row;
    const [bodyHash, prevHash] = [sha256(body), before ?? row.prev_hash];
    const hash = sha256(sorted({ chain: 1, stream, version, id, at, author, type, v, bodyHash, prevHash }));
    before = hash;
    return JSON.stringify({ ...row, body, body_hash: bodyHash, prev_hash: prevHash, hash });
  });
}

function cut(lines, last) {
  return lines.flatMap((line) => {
    const row = JSON.parse(line);
    if (row.kind === "stream") return [JSON.stringify({ ...row, lastVersion: last })];
    return row.version > last ? [] : [line];
  });
}
