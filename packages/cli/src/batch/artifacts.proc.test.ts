import { execFileSync } from "node:child_process";
import { access, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { openWorld, run, start, type World } from "../../test/heddle-process.ts";

const git = (world: World, ...args: readonly string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
    cwd: world.workspace,
    encoding: "utf8",
  });

async function repository(world: World): Promise<string> {
  git(world, "init", "-q");
  await writeFile(path.join(world.workspace, "kept.txt"), "one\n");
  git(world, "add", ".");
  git(world, "commit", "-q", "-m", "first");
  return git(world, "rev-parse", "HEAD").trim();
}

const json = async (...parts: readonly string[]): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(path.join(...parts), "utf8"));

async function scripted(world: World, script: unknown): Promise<string> {
  return world.file("script.json", JSON.stringify(script));
}

test("everything about a run lies in its folder, which the agent can neither see nor write", async () => {
  await using world = await openWorld();
  const head = await repository(world);
  // Inside the workspace on purpose: the worst folder for it.
  const root = path.join(world.workspace, "out");
  const command = "echo two >> kept.txt; echo new > added.txt; ls -A out/job 2>&1; touch out/job/x 2>&1; seq 1 20000";
  const script = await scripted(world, [{ calls: [{ tool: "bash", args: { command } }] }, { text: "done" }]);
  const ran = await run(
    ["exec", "-s", "workspace-write", "--script", script, "--artifact-root", "out", "--run-id", "job", "go"],
    { world, env: { HEDDLE_TEST_SECRET: "hush" } },
  );
  expect(ran).toMatchObject({ code: 0, stdout: "done\n" });
  const folder = path.join(root, "job");
  expect((await readdir(folder)).toSorted()).toEqual([
    "capabilities.json",
    "diff.patch",
    "events.jsonl",
    "manifest.json",
    "policy.json",
    "report.json",
    "result.json",
    "run-state.json",
    "stderr.log",
    "tool-outputs",
    "transcript.json",
  ]);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);

  const result = RunResult.parse(await json(folder, "result.json"));
  expect(result).toMatchObject({
    status: "completed",
    artifact_root: folder,
    git: {
      before: { head, is_dirty: false },
      after: { head, is_dirty: true },
      diffstat: { files: 2, insertions: 2, deletions: 0 },
    },
  });
  for (const file of Object.values(result.paths)) await access(file);

  const outputs = await readdir(path.join(folder, "tool-outputs"));
  expect(outputs).toHaveLength(1);
  const output = await readFile(path.join(folder, "tool-outputs", outputs[0] ?? ""), "utf8");
  expect(output).toContain("20000\n");
  expect(output).toMatch(/touch: .*out\/job\/x/);
  expect(output).not.toContain("run-state.json");

  const patch = await readFile(path.join(folder, "diff.patch"), "utf8");
  expect(patch).toContain("+two");
  expect(patch).toContain("+++ b/added.txt");
  expect(patch).not.toContain("out/job");

  expect(await json(folder, "run-state.json")).toMatchObject({ status: "completed", exit_code: 0, run_id: "job" });
  expect(await json(folder, "policy.json")).toMatchObject({
    envelope: { id: "edit", masked: [world.home, `${world.home}-worktrees`, folder] },
  });
  expect(await json(folder, "report.json")).toMatchObject({ tools: [{ tool: "bash", outcome: "ok" }] });
  expect(await json(folder, "manifest.json")).toMatchObject({
    run_id: "job",
    settings: { sandboxMode: "workspace-write" },
  });
  const events = (await readFile(path.join(folder, "events.jsonl"), "utf8")).trimEnd().split("\n");
  expect(JSON.parse(events[0] ?? "")).toMatchObject({ body: { type: "turn.admitted" } });
  expect(JSON.parse(events.at(-1) ?? "")).toMatchObject({ body: { type: "turn.completed" } });
  expect(await readFile(path.join(folder, "stderr.log"), "utf8")).toContain("record: heddle threads show");
});

test("12.12: the patch, the names of files in it, the manifest and the branch of a run hold no secret", async () => {
  await using world = await openWorld();
  await repository(world);
  const [key, token] = ["corp-key-4f1b9c7e2a6d8053", `ghp_${"Q7x".repeat(12)}`];
  git(world, "checkout", "-q", "-b", `fix/${token}`);
  const command = `printf 'a=%s%s\\n' corp-key- 4f1b9c7e2a6d8053 > .env; printf 'é %s%s\\n' ghp_ ${token.slice(4)} > name-$(printf '%s%s' corp-key- 4f1b9c7e2a6d8053).txt; echo kept >> kept.txt`;
  const script = await scripted(world, [{ calls: [{ tool: "bash", args: { command } }] }, { text: "done" }]);
  const manifest = await world.file("own.json", JSON.stringify({ note: `uses ${key} and ${token}` }));
  const kept = ["--artifact-root", path.join(world.root, "out"), "--run-id", "job", "--manifest", manifest];
  const ran = await run(["exec", "-s", "workspace-write", "--script", script, ...kept, "go"], {
    world,
    env: { CORP_API_KEY: key },
  });
  expect(ran).toMatchObject({ code: 0 });
  const folder = path.join(world.root, "out", "job");
  const patch = await readFile(path.join(folder, "diff.patch"), "utf8");
  expect(patch).toContain("+a=[redacted:known-secret]\n");
  expect(patch).toContain("+++ b/name-[redacted:known-secret].txt");
  expect(patch).toContain("+é [redacted:github-token]\n");
  expect(patch).toContain("+kept\n");
  for (const name of await readdir(folder, { recursive: true })) {
    const text = await readFile(path.join(folder, name), "utf8").catch(() => "");
    expect(text.includes(key) || text.includes(token), name).toBe(false);
  }
});

test("a run id that was used is refused, and its folder stays as it is", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "done" }]);
  const args = ["exec", "--script", script, "--artifact-root", path.join(world.root, "out"), "--run-id", "job", "go"];
  expect(await run(args, { world })).toMatchObject({ code: 0 });
  const before = await readFile(path.join(world.root, "out", "job", "result.json"), "utf8");
  expect(await run(args, { world })).toMatchObject({ code: 2, stderr: expect.stringContaining("--run-id") });
  expect(await readFile(path.join(world.root, "out", "job", "result.json"), "utf8")).toBe(before);
});

test("secrets of the configuration are in the manifest only as digests", async () => {
  await using world = await openWorld();
  await world.file(
    "home/config.toml",
    `model = "m"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "http://127.0.0.1:9/v1?key=query-key"\nenv_key = "MOCK_KEY"\nhttp_headers = { "x-token" = "header-token" }\nquery_params = { token = "param-token" }\nrequest_max_retries = 0\nstream_max_retries = 0\n`,
  );
  const ran = await run(["exec", "--artifact-root", path.join(world.root, "out"), "--run-id", "job", "go"], {
    world,
    env: { MOCK_KEY: "secret-key-of-the-mock" },
  });
  expect(ran.code).toBe(4);
  const folder = path.join(world.root, "out", "job");
  let all = "";
  for (const name of await readdir(folder)) all += await readFile(path.join(folder, name), "utf8");
  for (const secret of ["query-key", "header-token", "param-token", "secret-key-of-the-mock"]) {
    expect(all).not.toContain(secret);
  }
  expect(await json(folder, "manifest.json")).toMatchObject({
    providers: expect.arrayContaining([
      expect.objectContaining({ id: "mock", env_sha256: { MOCK_KEY: expect.stringMatching(/^[0-9a-f]{16}$/) } }),
    ]),
  });
  expect(await json(folder, "run-state.json")).toMatchObject({ status: "failed" });
});

test("a disk that is full for the artifacts is an error of its own, and the answer is kept", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "the answer" }]);
  const resultFile = path.join(world.root, "result.json");
  const args = [
    "exec",
    "--script",
    script,
    "--artifact-root",
    path.join(world.root, "out"),
    "--result-json",
    resultFile,
  ];
  const late = await run([...args, "go"], { world, env: { HEDDLE_FAILPOINT: "artifact.before-append=enospc" } });
  expect(late).toMatchObject({ code: 8, stderr: expect.stringContaining("the disk is full") });
  expect(RunResult.parse(await json(resultFile))).toMatchObject({
    status: "failed",
    reason: "store.full",
    exit_code: 8,
    response: "the answer",
  });
  // Already at the first file: nothing is asked of a model.
  const early = await run([...args, "go"], { world, env: { HEDDLE_FAILPOINT: "artifact.before-write=enospc" } });
  expect(early).toMatchObject({ code: 8, stdout: "" });
  expect(RunResult.parse(await json(resultFile))).toMatchObject({ reason: "store.full", num_turns: 0 });
});

test("a hostile repository runs nothing of its own when Heddle asks git about it", async () => {
  await using world = await openWorld();
  await repository(world);
  const marker = path.join(world.root, "marker");
  const touch = `touch ${marker}`;
  for (const [key, value] of [
    ["core.fsmonitor", touch],
    ["diff.external", touch],
    ["core.hooksPath", path.join(world.workspace, "hooks")],
    ["core.pager", touch],
    ["filter.evil.clean", `${touch}; cat`],
    ["filter.evil.smudge", `${touch}; cat`],
    ["filter.evil.required", "true"],
    ["diff.evil.textconv", touch],
  ] as const) {
    git(world, "config", key, value);
  }
  await writeFile(path.join(world.workspace, ".gitattributes"), "* filter=evil diff=evil\n");
  await mkdir(path.join(world.workspace, "hooks"));
  await writeFile(path.join(world.workspace, "hooks", "post-index-change"), `#!/bin/sh\n${touch}\n`, { mode: 0o755 });
  await writeFile(path.join(world.workspace, "kept.txt"), "changed\n");
  const script = await scripted(world, [{ text: "done" }]);
  const ran = await run(
    ["exec", "--script", script, "--artifact-root", path.join(world.root, "o"), "--run-id", "j", "go"],
    {
      world,
    },
  );
  expect(ran.code).toBe(0);
  const { git: report } = RunResult.parse(await json(world.root, "o", "j", "result.json"));
  expect(report).toMatchObject({ before: { is_dirty: true }, diffstat: { files: 3 } });
  await expect(access(marker)).rejects.toThrow("ENOENT");
});

test("a kill at any moment of the writing leaves the old result or the new one, never half of one", async () => {
  await using world = await openWorld();
  const script = await scripted(world, [{ text: "x".repeat(20_000) }]);
  const file = path.join(world.root, "result.json");
  const args = [
    "exec",
    "--script",
    script,
    "--result-json",
    file,
    "--artifact-root",
    path.join(world.root, "out"),
    "go",
  ];
  const look = async (): Promise<"old" | "new"> => {
    const text = await readFile(file, "utf8");
    if (text === "old") return "old";
    expect(RunResult.parse(JSON.parse(text)).status).toBe("completed");
    return "new";
  };
  const seen = new Set<string>();
  for (const strike of ["artifact.before-write@1", "artifact.before-rename@9", "artifact.before-write@10"]) {
    await writeFile(file, "old");
    const ran = await run(args, { world, env: { HEDDLE_FAILPOINT: `${strike}=kill` } });
    expect(ran.signal ?? ran.code).not.toBe(0);
    seen.add(await look());
  }
  // And without any help: as soon as the first file of the end is there, at a moment nobody chose.
  for (let round = 0; round < 6; round += 1) {
    await writeFile(file, "old");
    await using running = start(["exec", "--json", ...args.slice(1)], { world });
    await running.sees("turn.completed");
    await sleep(Math.random() * 120);
    running.child.kill("SIGKILL");
    await running.ended;
    seen.add(await look());
  }
  expect(seen.has("old")).toBe(true);
  for (const name of await readdir(path.join(world.root, "out"))) {
    const folder = path.join(world.root, "out", name);
    for (const entry of await readdir(folder)) {
      if (entry.endsWith(".json") && !entry.startsWith(".")) await json(folder, entry);
    }
  }
});
