/** 13: what the agent chooses beside the content of its files decides nothing: where links lead, times, what git drops. */
import { execFileSync } from "node:child_process";
import { chmod, link, mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { judge, openTaskFixture, type TaskFixture } from "../../test/task-fixture.ts";
import type { Verdict } from "./verify.ts";

const run = (line: string) => ({ kind: "command", name: "works", run: line }) as const;
const LEADS_OUT = "a link that leads out of the workspace is not judged";

const others = (verdict: Verdict): unknown => verdict.work?.others.map(({ path, why }) => ({ path, why }));
const delivered = (verdict: Verdict): unknown => verdict.work?.delivered.map(({ path }) => path);

describe("13: a link of the agent's that leads out of the workspace is not judged", () => {
  const options = {
    files: { "sub/t.sh": "grep -q real impl.txt\n", "a/b/c": "" },
    checks: [run("sh sub/t.sh")],
    spec: { deliver: ["impl.txt", "way", "via"] },
  };
  const LINKS: Readonly<Record<string, (fixture: TaskFixture) => Promise<void>>> = {
    "by its whole path": ({ root, workspace }) => symlink(join(root, "else/planted"), join(workspace, "impl.txt")),
    "by dots": ({ workspace }) => symlink("sub/../../else/planted", join(workspace, "impl.txt")),
    "by the workspace and dots": ({ workspace }) =>
      symlink(`${workspace}/../else/planted`, join(workspace, "impl.txt")),
    "through another link": async ({ workspace }) => {
      await symlink("way/planted", join(workspace, "impl.txt"));
      await symlink("via", join(workspace, "way"));
      await symlink("../else", join(workspace, "via"));
    },
  };
  test.each(Object.entries(LINKS))("%s", async (_, make) => {
    for (const spec of [options.spec, {}]) {
      const verdict = await judge({ ...options, spec }, async (fixture) => {
        await mkdir(join(fixture.root, "else"));
        await writeFile(join(fixture.root, "else/planted"), "real\n");
        await make(fixture);
      });
      expect(verdict.passed).toBe(false);
      expect(verdict.results).toMatchObject([{ outcome: "failed" }]);
      expect(others(verdict)).toContainEqual({ path: expect.stringMatching(/impl|via/), why: LEADS_OUT });
    }
  });

  test("a link inside is judged, relative or not, and one of the beginning stays", async () => {
    for (const target of ["a/b/real", "W/a/b/real"]) {
      await using fixture = await openTaskFixture({ ...options, spec: { deliver: ["impl.txt", "a/**"] } });
      await writeFile(join(fixture.root, "owners"), "x\n");
      await symlink("../owners", join(fixture.workspace, "out"));
      const baseline = await fixture.takeBaseline();
      await fixture.write("a/b/real", "real\n");
      await symlink(target.replace("W", fixture.workspace), join(fixture.workspace, "impl.txt"));
      const verdict = await fixture.verify(baseline);
      expect(verdict, target).toMatchObject({ passed: true, work: { deliveredCount: 2, othersCount: 0 } });
    }
  });

  test("nor what makes a link of the owner's lead out", async () => {
    await using fixture = await openTaskFixture({ ...options, spec: { deliver: ["way", "note"] } });
    await symlink("a/b", join(fixture.workspace, "way"));
    await symlink("way/../../planted", join(fixture.workspace, "impl.txt"));
    const baseline = await fixture.takeBaseline();
    await writeFile(join(fixture.root, "planted"), "real\n");
    await fixture.remove("way");
    await symlink("a", join(fixture.workspace, "way"));
    await fixture.write("note", "x\n");
    const verdict = await fixture.verify(baseline);
    expect(verdict).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
    expect(others(verdict)).toEqual([{ path: "way", why: LEADS_OUT }]);
  });
});

test("13: a source that the agent dates back is newer than what was built of the beginning", async () => {
  // As make does it.
  const build = "[ build/app -nt src/app ] || cp src/app build/app; grep good build/app && grep feature src/app";
  await using fixture = await openTaskFixture({
    files: { "src/app": "good\n", "build/app": "good\n" },
    checks: [run(build)],
    spec: { deliver: ["src/**"] },
  });
  // Also where what was built says that it is from tomorrow.
  const tomorrow = Date.now() / 1000 + 86_400;
  await utimes(join(fixture.workspace, "build/app"), tomorrow, tomorrow);
  await utimes(join(fixture.workspace, "src/app"), 1, 1);
  const baseline = await fixture.takeBaseline();
  const workWith = async (text: string): Promise<Verdict> => {
    await fixture.write("src/app", text);
    await utimes(join(fixture.workspace, "src/app"), 1, 1);
    return await fixture.verify(baseline);
  };
  expect(await workWith("feature, broken\n")).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
  expect(await workWith("feature, good\n")).toMatchObject({ passed: true });
});

describe("13: work that comes back through git is judged as git brings it", () => {
  const judged = async (
    line: string,
    work: (fixture: TaskFixture) => Promise<void>,
    deliver: string[],
  ): Promise<Verdict> =>
    await judge(
      {
        files: { "a.txt": "a\n", "old/x": "x\n", "s.sh": "echo s\n" },
        checks: [run(line)],
        spec: { worktree: { merge: "branch" }, deliver },
      },
      work,
    );
  const at = ({ workspace }: TaskFixture, path: string): string => join(workspace, path);

  test("an empty folder, made or left, is none", async () => {
    const work = async (fixture: TaskFixture): Promise<void> => {
      await mkdir(at(fixture, "empty/deep"), { recursive: true });
      await fixture.write("note.md", "n\n");
      await fixture.remove("old/x");
    };
    const made = await judged("[ -d empty ]", work, ["empty", "note.md", "old/x"]);
    expect(made).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
    expect(others(made)).toEqual([{ path: "empty/deep", why: "git keeps no empty folders" }]);
    expect(await judged("[ ! -d old ] && [ -f note.md ]", work, ["note.md", "old/x"])).toMatchObject({ passed: true });
  });

  test("a mode is 644 or 755", async () => {
    const work = async (fixture: TaskFixture): Promise<void> => {
      await fixture.write("key", "k\n");
      await fixture.write("bin/run", "r\n");
      await chmod(at(fixture, "key"), 0o600);
      await chmod(at(fixture, "bin/run"), 0o700);
      await chmod(at(fixture, "bin"), 0o700);
      await chmod(at(fixture, "a.txt"), 0o600);
      await chmod(at(fixture, "s.sh"), 0o755);
    };
    const line = "[ $(stat -c %a key bin bin/run a.txt s.sh | tr '\\n' -) = 644-755-755-644-755- ]";
    const verdict = await judged(line, work, ["**"]);
    expect(verdict).toMatchObject({ passed: true });
    expect(delivered(verdict)).toEqual(["bin/run", "key", "s.sh"]);
    expect(others(verdict)).toEqual([
      { path: "a.txt", why: "git keeps no mode but 644 and 755: 600 comes back as 644" },
    ]);
  });
});

test("13: a stale cache of compiled Python is not taken for a source of the same size and time (needs python3)", async ({
  skip,
}) => {
  const env = { PATH: process.env["PATH"] };
  try {
    execFileSync("python3", ["--version"], { stdio: "ignore" });
  } catch {
    skip();
  }
  const good = "def f(): return 5 # pad\n";
  await using fixture = await openTaskFixture({
    files: { "m.py": good, "t.py": "import m\nassert m.f() == 5\nassert 'feature' in open('m.py').read()\n" },
    checks: [run("python3 t.py")],
    spec: { deliver: ["m.py"] },
  });
  await utimes(join(fixture.workspace, "m.py"), 1_700_000_000, 1_700_000_000);
  execFileSync("python3", ["-c", "import m"], { cwd: fixture.workspace, env });
  const baseline = await fixture.takeBaseline();
  await fixture.write("m.py", "feature broken".padEnd(good.length, "#"));
  await utimes(join(fixture.workspace, "m.py"), 1_700_000_000, 1_700_000_000);
  expect(await fixture.verify(baseline)).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
});

test("13: a delivered link to what is not delivered is shown as one, and its owner decides when a check reads through it", async () => {
  const files = { "gen.sh": "echo wrong\n", "golden.txt": "right\n", "out/.keep": "", "a.txt": "a\n" };
  const compare = "sh gen.sh > out/result.txt && cmp out/result.txt golden.txt";
  const work =
    (target: string) =>
    async (fixture: TaskFixture): Promise<void> => {
      await fixture.write("gen.sh", "echo right\n");
      await symlink(target, join(fixture.workspace, "out/result.txt"));
    };
  const judged = (target: string, line = compare): Promise<Verdict> =>
    judge({ files, checks: [{ kind: "command", run: line }], spec: { deliver: ["out/**", "gen.sh"] } }, work(target));
  expect(await judged("../golden.txt")).toMatchObject({
    passed: false,
    review: {
      reasons: [{ kind: "link", files: ["out/result.txt"], message: expect.stringContaining("to ../golden.txt") }],
    },
    work: { delivered: [{ path: "gen.sh" }, { path: "out/result.txt", leadsTo: "../golden.txt" }] },
  });
  // One that no check follows, and one to what is delivered too.
  expect(await judged("../golden.txt", '[ "$(sh gen.sh)" = right ]')).toMatchObject({ passed: true });
  expect(await judged("../gen.sh", "grep -q right out/result.txt")).toMatchObject({ passed: true });
});

test("13: a file that has a name outside the workspace too and is not as it was is put to the owner", async () => {
  const judged = async (line: string): Promise<Verdict> => {
    await using fixture = await openTaskFixture({
      files: { "sum.sh": "echo 1\n", "in/a": "1\n" },
      checks: [run("grep -q 5 sum.sh")],
      spec: { deliver: ["sum.sh"] },
    });
    await writeFile(join(fixture.root, "shared.sh"), 'equal() { [ "$1" = "$2" ]; }\n');
    await link(join(fixture.root, "shared.sh"), join(fixture.workspace, "in/shared.sh"));
    // All its names are in the workspace: nothing of it is outside.
    await link(join(fixture.workspace, "in/a"), join(fixture.workspace, "in/b"));
    const baseline = await fixture.takeBaseline();
    execFileSync("sh", ["-c", line], { cwd: fixture.workspace });
    return await fixture.verify(baseline);
  };
  const planted = { passed: false, review: { reasons: [{ kind: "outside", files: ["in/shared.sh"] }] } };
  expect(await judged("echo 'equal() { :; }' > in/shared.sh; echo 5 > sum.sh")).toMatchObject(planted);
  // The content is there again, under another file; or the name is gone.
  const swapped = "cp in/shared.sh c; echo 'equal() { :; }' > in/shared.sh; mv c in/shared.sh; echo 5 > sum.sh";
  expect(await judged(swapped)).toMatchObject(planted);
  expect(await judged("echo 'equal() { :; }' > in/shared.sh; mv in x; echo 5 > sum.sh")).toMatchObject(planted);
  expect(await judged("echo 2 > in/a; ln in/shared.sh y; echo 5 > sum.sh")).toMatchObject({ passed: true });
});
