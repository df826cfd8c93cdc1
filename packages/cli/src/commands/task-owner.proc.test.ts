/** What an owner does with the work of a task: look at it, accept it, take it back, judge it again, take it elsewhere. */
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readdir, readFile, readlink, rm, symlink, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { verifyBundle } from "@heddle/tasks";
import { expect, test } from "vitest";
import { openWorld, run, start, type Ran } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";
import { MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

/** A repair that a command check judges, and a file that nobody asked for. */
const WORK =
  "printf 'echo $(($1 + $2))\\n' > sum.sh; printf 'x' > stray.txt; rm old/gone.txt; chmod 700 run.sh; ln -sf sum.sh to-sum";
const CHECKS = 'checks:\n  - command: test "$(sh sum.sh 2 3)" = 5\n';
const SPEC = `name: sum\nworkspace: .\ngoal: Correct sum.sh.\n${CHECKS}`;

async function openSum(work: string | ((turn: number) => string) = WORK): Promise<MockWorld> {
  let turns = 0;
  const mock = await openMockWorld({
    respond: ({ answers }) => {
      if (answers > 0) return { text: "It is done." };
      turns += 1;
      return { calls: [{ tool: "exec_command", args: { cmd: typeof work === "string" ? work : work(turns) } }] };
    },
  });
  const { world } = mock;
  await world.file("workspace/sum.sh", "echo $(($1 - $2))\n");
  await world.file("workspace/run.sh", "exit 0\n");
  await world.file("workspace/old/gone.txt", "old\n");
  await mkdir(path.join(world.workspace, "empty"));
  await symlink("old/gone.txt", path.join(world.workspace, "to-gone"));
  await writeFile(Buffer.concat([Buffer.from(`${world.workspace}/odd-`), Buffer.from([0xff])]), "odd");
  await utimes(path.join(world.workspace, "run.sh"), 1_000_000, 1_000_000);
  return mock;
}

async function heddle({ world }: MockWorld, ...args: readonly string[]): Promise<Ran> {
  return run(["task", ...args], { world, env: MOCK_KEY });
}

/** Runs it to where it comes to rest. */
async function runTask(mock: MockWorld, spec: string): Promise<{ readonly id: string; readonly ran: Ran }> {
  await mock.world.file("spec/task.yaml", spec.replace("workspace: .", `workspace: ${mock.world.workspace}`));
  const ran = await heddle(mock, "run", `${mock.world.root}/spec/task.yaml`);
  const [, id = ""] = /(task_[0-9a-f-]{36})/.exec(ran.stdout) ?? [];
  return { id, ran };
}

/** Every entry of a tree, by a walk that shares nothing with the product. */
async function walk(root: string): Promise<Readonly<Record<string, unknown>>> {
  const found: Record<string, unknown> = {};
  const visit = async (folder: Buffer, prefix: string): Promise<void> => {
    for (const name of await readdir(folder, { encoding: "buffer" })) {
      const at = Buffer.concat([folder, Buffer.from("/"), name]);
      const stat = await lstat(at, { bigint: true });
      const key = `${prefix}${name.toString("latin1")}`;
      const facts = [stat.mode.toString(8), stat.isDirectory() ? "" : String(stat.mtimeNs / 1_000_000n)];
      if (stat.isSymbolicLink())
        found[key] = [facts[0], (await readlink(at, { encoding: "buffer" })).toString("latin1")];
      else if (stat.isFile()) found[key] = [...facts, (await readFile(at)).toString("latin1")];
      else found[key] = facts;
      if (stat.isDirectory()) await visit(at, `${key}/`);
    }
  };
  await visit(Buffer.from(root), "");
  return found;
}

test(
  "13: diff names what was delivered and left out, verify judges the same, undo puts back exactly",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum();
    const { workspace } = mock.world;
    const before = await walk(workspace);
    const { id, ran } = await runTask(mock, `${SPEC}deliver: [sum.sh]\n`);
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stdout).toContain("rests on sum.sh (changed)");
    expect(ran.stdout).toContain("changed, not judged: ");
    const stat = await heddle(mock, "diff", id, "--stat");
    expect(stat.stdout).toContain("as it was frozen and judged");
    expect(stat.stdout).toMatch(/delivered {2}changed {2}sum\.sh {2}\+1 -1/);
    expect(stat.stdout).toMatch(/left out {3}added {4}stray\.txt/);
    expect(stat.stdout).toMatch(/left out {3}removed {2}old\/gone\.txt/);
    const json = JSON.parse((await heddle(mock, "diff", id, "sum.sh", "--json")).stdout);
    expect(json).toMatchObject({
      of: "judged",
      count: 1,
      files: [{ path: "sum.sh", standing: "delivered", diff: expect.stringContaining("+echo $(($1 + $2))") }],
    });
    const again = await heddle(mock, "verify", id);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stdout).toContain("SAME");
    const dry = await heddle(mock, "undo", id, "--dry-run");
    expect(dry.stdout).toContain("would be put back");
    expect(await walk(workspace)).not.toEqual(before);

    // What the user did since is not taken away without a word.
    await writeFile(path.join(workspace, "mine.txt"), "mine");
    const refused = await heddle(mock, "undo", id);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain("mine.txt changed after the agent stopped");
    await rm(path.join(workspace, "mine.txt"));
    const undone = await heddle(mock, "undo", id, "--json");
    expect(JSON.parse(undone.stdout)).toMatchObject({ state: "verified", isDone: true, later: [] });
    expect(await walk(workspace)).toEqual(before);
    expect((await heddle(mock, "log", id)).stdout).toContain("the workspace was reverted: 5 files");
    // It can still be judged again, and deleting removes what was kept.
    expect((await heddle(mock, "verify", id)).code).toBe(0);
    expect((await heddle(mock, "delete", id)).code).toBe(0);
    expect(await readdir(path.join(mock.world.home, "rooms"))).toEqual([]);
  },
);

test(
  "13: work that rests on a file no check names is put to its owner, who accepts it or begins again",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum((turn) => (turn === 1 ? WORK : "printf 'echo $(($1 + $2)) # again\\n' > sum.sh"));
    const { id, ran } = await runTask(mock, SPEC);
    expect(ran.code).toBe(1);
    const shown = (await heddle(mock, "show", id)).stdout;
    expect(shown).toMatch(/not verified: the checks pass only with files that no check names as the work: .*sum\.sh/);
    expect(shown).toContain(`heddle task accept ${id}`);
    expect(shown).toMatch(/deliver: \[.*"sum\.sh"\]/);
    const before = await heddle(mock, "verify", id);
    expect(before.stdout).toContain("review then, review now");
    const accepted = await heddle(mock, "accept", id);
    expect(accepted).toMatchObject({ code: 0 });
    expect(accepted.stdout).toContain("sum.sh");
    expect((await run(["watch", "--queue", "--once"], { world: mock.world, env: MOCK_KEY })).stdout).toContain(
      "VERIFIED",
    );
    expect((await heddle(mock, "show", id)).stdout).toMatch(/accepted {3}.*sum\.sh/);
    expect((await heddle(mock, "verify", id)).code).toBe(0);
    expect((await heddle(mock, "accept", id)).stderr).toContain("has nothing that waits for you to accept it");
  },
);

test(
  "13: retry --from-baseline puts the workspace back and begins again; a running task is not undone",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum((turn) => (turn === 1 ? WORK : "printf 'echo $(($1 + $2))\\n' > sum.sh"));
    const before = await walk(mock.world.workspace);
    const { id } = await runTask(mock, SPEC);
    const retried = await heddle(mock, "retry", id, "--from-baseline");
    expect(retried).toMatchObject({ code: 0 });
    expect(await walk(mock.world.workspace)).toEqual(before);
    const pending = await heddle(mock, "undo", id);
    expect(pending.stderr).toContain(`heddle task pause ${id}`);
    await run(["watch", "--queue", "--once"], { world: mock.world, env: MOCK_KEY });
    const shown = JSON.parse((await heddle(mock, "show", id, "--json")).stdout);
    expect(shown).toMatchObject({
      state: "paused",
      lastCheck: { review: { deliver: ["sum.sh"] }, work: { othersCount: 0 } },
    });
  },
);

test(
  "13: a kill during undo leaves the workspace as before or is finished by the next command",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum();
    const { workspace } = mock.world;
    const before = await walk(workspace);
    const { id } = await runTask(mock, `${SPEC}deliver: [sum.sh]\n`);
    const worked = await walk(workspace);
    const strike = (point: string): Promise<Ran> =>
      run(["task", "undo", id], { world: mock.world, env: { HEDDLE_FAILPOINT: `${point}=kill` } });
    expect((await strike("tree.before-intent")).signal).toBe("SIGKILL");
    expect(await walk(workspace)).toEqual(worked);
    expect((await strike("tree.during-put")).signal).toBe("SIGKILL");
    const listed = await heddle(mock, "list");
    expect(listed.stderr).toContain("finished the changes that a process was writing there when it ended");
    expect(await walk(workspace)).toEqual(before);
    expect(JSON.parse((await heddle(mock, "show", id, "--json")).stdout)).toMatchObject({ undone: { files: 5 } });
    expect((await heddle(mock, "undo", id)).code).toBe(0);
    // Judging again writes nothing, wherever it dies.
    const killed = await run(["task", "verify", id], {
      world: mock.world,
      env: { HEDDLE_FAILPOINT: "sandbox.after-open=kill" },
    });
    expect(killed.signal).toBe("SIGKILL");
    expect((await heddle(mock, "verify", id)).code).toBe(0);
    expect(await walk(workspace)).toEqual(before);
  },
);

test(
  "13: a bundle is judged elsewhere with the same outcome and without the user's home, and a forged one is refused",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum();
    await using other = await openWorld();
    const peek = `  - command: "! cat $HOME/.ssh/id ${await other.file(".ssh/id", "KEY")} | grep KEY"\n`;
    const { id } = await runTask(mock, `${SPEC}${peek}deliver: [sum.sh]\n`);
    const bundle = path.join(mock.world.root, "work.gz");
    expect(await heddle(mock, "export", id, "--bundle", bundle)).toMatchObject({ code: 0 });
    expect((await heddle(mock, "export", id, "--bundle", bundle)).stderr).toContain("it exists already");
    // In a home that the workspace lies in, and in another.
    expect(await heddle(mock, "verify", "--bundle", bundle)).toMatchObject({ code: 0, stderr: "" });
    const verify = (file: string): Promise<Ran> => run(["task", "verify", "--bundle", file], { world: other });
    const same = await verify(bundle);
    expect(same.stdout).toContain("SAME");
    expect(same).toMatchObject({ code: 0, stderr: "" });

    const lines = gunzipSync(await readFile(bundle))
      .toString("utf8")
      .trimEnd()
      .split("\n");
    const at = (part: string, from = 0): number =>
      lines.findIndex((line, index) => index >= from && line.includes(part));
    const edit = (index: number, from: string, to: string): readonly string[] =>
      lines.with(index, (lines[index] ?? "").replaceAll(from, to));
    const data = (text: string): string =>
      JSON.stringify({ kind: "data", base64: Buffer.from(text).toString("base64") });
    const entry = at('"path":"run.sh"');
    const [link, empty] = [at('"path":"to-gone"'), at('"path":"empty"')];
    const change = at('"path":"sum.sh"', at('"kind":"work"'));
    const made = Buffer.from("echo 5\n");
    const forgedWork = lines
      .with(
        change,
        (lines[change] ?? "").replace(
          /("now":\{[^}]*"size":)\d+([^}]*"sha256":")[0-9a-f]+/,
          `$1${made.length}$2${sha256(made)}`,
        ),
      )
      .with(change + 1, data("echo 5\n"));
    const signs = (line: string): boolean => line.includes('{\\"kind\\":\\"checkpoint');
    const unsigned = (isKept: (line: string) => boolean): readonly string[] => {
      const rest = lines.filter((line) => !signs(line) || isKept(line));
      return rest.map((line) => line.replace(/(\\"checkpoints\\":)\d+/, `$1${rest.filter(signs).length}`));
    };
    /** Records of the first version of their format have no hash over all lines. */
    const asFirstVersion = (all: readonly string[]): readonly string[] =>
      all.map((line) =>
        line.replace(/\\"v\\":2,/, '\\"v\\":1,').replace(/(\\"checkpoints\\":\d+),\\"sha256\\":[^}]*\}/, "$1}"),
      );
    const forged: readonly (readonly [string, readonly string[]])[] = [
      ["not a path below a folder", edit(entry, "run.sh", "../run.sh")],
      ["not a path below a folder", edit(entry, "run.sh", "/run.sh")],
      ["is in no folder", lines.toSpliced(link + 1, 0, (lines[entry] ?? "").replace("run.sh", "to-gone/a"))],
      ["points elsewhere", edit(link, "old/gone.txt", "/etc/passwd")],
      ["longer than it says", edit(entry, '"size":7', '"size":3')],
      ["shorter than it says", edit(entry, '"size":7', '"size":9')],
      ["there twice", lines.toSpliced(entry, 0, lines[entry] ?? "", lines[entry + 1] ?? "")],
      ["what its hash says", lines.with(entry + 1, data("exit 1\n"))],
      ["did not change in this way", edit(change, '"how":"changed"', '"how":"added"')],
      ...[
        forgedWork,
        lines.with(empty, (lines[empty] ?? "").replace(/"mode":\d+/, '"mode":457')),
        lines.map((line) => line.replaceAll(/"mtimeNs":"\d+"/g, '"mtimeNs":"1"')),
        edit(at('"kind":"tree"'), '"skipped":[]', '"skipped":["other"]'),
      ].map((changed) => ["anybody could have changed its files", changed] as const),
      // The lines of the record have a hash of their own.
      ["its record was changed", unsigned(() => false)],
      ["nothing in its record is signed", asFirstVersion(unsigned(() => false))],
      ["signed up to event 1 of", asFirstVersion(unsigned((line) => line.includes('\\"version\\":1,')))],
      ["its record was changed", edit(at("task.checked"), "rests", "rusts")],
      ["does not belong in a bundle", [...lines.slice(0, 3), '{"kind":"opinion"}', ...lines.slice(3)]],
    ];
    const refuses = async (reason: string, text: string): Promise<void> => {
      const file = await other.file("forged.gz", gzipSync(text));
      const found = await verifyBundle({ file, home: other.home, signal: new AbortController().signal });
      expect(found).toMatchObject({ outcome: "missing", reasons: [expect.stringContaining(reason)] });
    };
    for (const [reason, forgery] of forged) await refuses(reason, sealed(forgery));
    const whole: readonly (readonly [string, readonly string[]])[] = [
      ["it is cut off", lines.slice(0, -2)],
      ["sealed with", lines.toSpliced(empty, 1)],
      ["something follows", [...lines, lines[1] ?? ""]],
    ];
    for (const [reason, forgery] of whole) await refuses(reason, `${forgery.join("\n")}\n`);
    const half = await other.file("half.gz", (await readFile(bundle)).subarray(0, 400));
    expect((await verify(half)).code).toBe(3);
    expect((await verify(await other.file("none.gz", "hello"))).code).toBe(3);
    expect((await readdir(other.env["TMPDIR"] ?? "")).filter((name) => name.startsWith("heddle-bundle-"))).toEqual([]);
  },
);

test(
  "13: while it is worked on the folder is shown as it is, the check that runs is named, and nothing is undone",
  { timeout: 240_000 },
  async () => {
    await using mock = await openMockWorld({
      respond: ({ answers }) => {
        if (answers > 1) return { text: "It is done." };
        const cmd = answers === 0 ? "printf new > made.txt" : "until test -e go.txt; do sleep 0.1; done";
        return { calls: [{ tool: "exec_command", args: { cmd, yield_time_ms: 30_000 } }] };
      },
    });
    const { world } = mock;
    const hangs = "checks: [{command: 'test -e made.txt && sleep 300'}]";
    await world.file("workspace/task.yaml", `name: sum\nworkspace: .\ngoal: g\ndeliver: [made.txt]\n${hangs}\n`);
    await using running = start(["task", "run", "task.yaml"], { world, env: MOCK_KEY });
    await mock.server.arrived(1);
    const live = await heddle(mock, "diff", "sum", "made.txt");
    expect(live.stdout).toContain("as the folder is now; nothing of it is judged");
    // Names are the agent's as well: no line of its begins where Heddle's do.
    expect(live.stdout).toMatch(/^\| made\.txt$/m);
    expect(live.stdout).toContain("| +new");
    expect((await heddle(mock, "undo", "sum")).stderr).toMatch(/is running; heddle task pause/);
    await world.file("workspace/go.txt", "");
    await running.sees("sleep 300 on the deliverables alone");
    expect((await heddle(mock, "show", "sum")).stdout).toMatch(
      /checking {3}command test -e made\.txt && sleep 300 on the deliverables alone, for \d/,
    );
    expect((await heddle(mock, "diff", "sum", "--stat")).stdout).toMatch(/made\.txt/);
  },
);

function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** With an end that fits what comes before it, as a forger would write it. */
function sealed(lines: readonly string[]): string {
  const body = lines.slice(0, -1).map((line) => `${line}\n`);
  return `${body.join("")}${JSON.stringify({ kind: "end", lines: body.length, sha256: sha256(body.join("")) })}\n`;
}

test("13: over HTTP work is shown, accepted, judged again and put back", { timeout: 240_000 }, async () => {
  await using mock = await openSum();
  const { world } = mock;
  const before = await walk(world.workspace);
  const { id } = await runTask(mock, SPEC);
  await using served = await startServe(world, { env: MOCK_KEY });
  const at = `/api/tasks/${id}`;
  const { json: diff } = await served.call("GET", `${at}/diff?path=sum.sh`);
  expect(diff).toMatchObject({
    of: "judged",
    count: 1,
    files: [{ path: "sum.sh", diff: expect.stringContaining("+echo") }],
  });
  expect(await served.call("POST", `${at}/accept`, {})).toMatchObject({ status: 200, json: { state: "pending" } });
  await served.events(`tasks/${id}`, ({ body }) => body.type === "task.verified");
  expect((await served.call("POST", `${at}/verify`, {})).json).toMatchObject({
    outcome: "same",
    now: { verdict: "passed" },
  });
  const undone = await served.call("POST", `${at}/undo`, {});
  expect(undone).toMatchObject({
    status: 200,
    json: { isDone: true, task: { state: "verified", undone: { files: 5 } } },
  });
  expect(await walk(world.workspace)).toEqual(before);
  expect(await served.call("POST", `${at}/accept`, {})).toMatchObject({ status: 409 });
});

test(
  "13: what was kept and then changed cannot be judged again, and collecting removes it of tasks that ended",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum();
    const { id } = await runTask(mock, `${SPEC}deliver: [sum.sh]\n`);
    const kept = path.join(mock.world.home, "rooms", id, "work-1/files/sum.sh");
    await chmod(kept, 0o600);
    await writeFile(kept, "echo 5\n");
    const ran = await heddle(mock, "verify", id);
    expect(ran).toMatchObject({ code: 3 });
    expect(ran.stdout).toContain("not as recorded: sum.sh");
    expect((await heddle(mock, "collect")).stdout).toMatch(/kept .*its task ended not long ago/);
    expect((await heddle(mock, "collect", "--older-than", "0s")).stdout).toMatch(/removed .*ended long ago/);
    expect((await heddle(mock, "verify", id)).code).toBe(3);
    expect((await heddle(mock, "undo", id)).stderr).toContain("heddle task collect removes");
  },
);

test(
  "13: a task file that the agent changed is not run again before its user has looked",
  { timeout: 240_000 },
  async () => {
    await using mock = await openSum(`${WORK}; printf '\\nlabels: [mine]\\n' >> task.yaml`);
    const { world } = mock;
    await world.file("workspace/task.yaml", `${SPEC}deliver: [sum.sh]\n`);
    expect((await heddle(mock, "run", "task.yaml")).code).toBe(0);
    const refused = await heddle(mock, "run", "task.yaml");
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain("--accept-spec");
    expect((await heddle(mock, "add", "task.yaml")).stderr).toContain("--accept-spec");
    expect((await heddle(mock, "add", "task.yaml", "--accept-spec")).code).toBe(0);
    // Accepted once is accepted.
    expect((await heddle(mock, "add", "task.yaml")).code).toBe(0);
  },
);
