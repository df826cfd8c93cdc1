/**
 * 13: a setup may run what the agent delivered. What it makes otherwise because of that counts only where the spec names it;
 * what it makes of the beginning alone is the owner's.
 */
import { execFileSync } from "node:child_process";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { python } from "../../test/cheats/project.ts";
import { judge, openTaskFixture, type TaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";
import type { Verdict } from "./verify.ts";

interface Language {
  readonly name: string;
  readonly program: string;
  readonly ending: string;
  readonly app: (word: string) => string;
  /** `tools/run` becomes `out/run` by the owner's setup, and judges. */
  readonly run: string;
  readonly check: string;
  /** A script that does what a line of the shell says. */
  readonly script: (line: string) => string;
}

const LANGUAGES: readonly Language[] = [
  {
    name: "shell",
    program: "sh",
    ending: "sh",
    app: (word) => `echo ${word}\n`,
    run: '[ -e out/skip ] && exit 0; [ "$(sh src/app.sh)" = right ]\n',
    check: ". out/run.sh\n",
    script: (line) => `${line}\n`,
  },
  {
    name: "JavaScript",
    program: process.execPath,
    ending: "js",
    app: (word) => `module.exports = "${word}";\n`,
    run: 'if (!require("fs").existsSync("out/skip") && require("../src/app.js") !== "right") process.exit(1);\n',
    check: 'require("../out/run.js");\n',
    script: (line) => `require("child_process").execSync(${JSON.stringify(line)});\n`,
  },
  ...(python === undefined
    ? []
    : [
        {
          name: "Python",
          program: python,
          ending: "py",
          app: (word: string) => `word = "${word}"\n`,
          run: 'import os, sys\nif os.path.exists("out/skip"): sys.exit(0)\nfrom app import word\nsys.exit(word != "right")\n',
          check: 'import sys\nsys.path[:0] = ["out", "src"]\nimport run\n',
          script: (line: string) => `import os\nos.system(${JSON.stringify(line)})\n`,
        },
      ]),
];

/** A setup of the owner's that makes `out` and runs what is delivered. */
function built({ program, ending, app, run, check }: Language): TaskFixtureOptions {
  return {
    files: {
      [`tools/run.${ending}`]: run,
      [`test/check.${ending}`]: check,
      [`src/app.${ending}`]: app("wrong"),
      [`src/build.${ending}`]: "",
      ".gitignore": "out\n",
    },
    git: true,
    checks: [{ kind: "command", run: [program, `test/check.${ending}`] }],
    spec: {
      deliver: ["src/**"],
      setup: { run: `mkdir -p out; cp tools/run.${ending} out; "${program}" src/build.${ending}` },
    },
  };
}

/** What the delivered script does, and what is named then. */
const CHEATS: readonly (readonly [line: string, named: string])[] = [
  ["touch out/skip", "out/skip"],
  [": > out/run.EXT", "out/run.EXT"],
  [": > src/none.EXT; ln -sf ../src/none.EXT out/run.EXT", "out/run.EXT"],
  [": > test/check.EXT", "test/check.EXT"],
  ["mkdir .t; : > .t/check.EXT; rm -r test; ln -s .t test", "test"],
];

test.each(LANGUAGES)(
  "13: what delivered code makes of a setup puts the work to its owner, $name: added to a folder of the setup, changed in it, a test",
  async (language) => {
    const { ending, app, script } = language;
    await using fixture = await openTaskFixture(built(language));
    const baseline = await fixture.takeBaseline();
    const of = (text: string): string => text.replaceAll("EXT", ending);
    await fixture.write(`src/app.${ending}`, `${app("wrong")}\n`);
    for (const [line, named] of CHEATS) {
      await fixture.write(`src/build.${ending}`, script(of(line)));
      const verdict = await fixture.verify(baseline);
      const asked = { passed: false, review: { reasons: [{ kind: "setup" }] } };
      expect(verdict, line).toMatchObject(asked);
      expect(verdict.review?.reasons[0]?.files, line).toContain(of(named));
    }
    // A repair needs none of it.
    await fixture.write(`src/app.${ending}`, app("right"));
    await fixture.write(`src/build.${ending}`, script(of(CHEATS.map(([line]) => line).join("; "))));
    expect(await fixture.verify(baseline)).toMatchObject({ passed: true });
  },
);

test.each(LANGUAGES)("13: times that delivered code sets in a setup decide nothing, $name", async (language) => {
  const { ending, script } = language;
  const { spec, files } = built(language);
  await using fixture = await openTaskFixture({
    files: {
      ...files,
      stamp: "right\n",
      Makefile: "check: stamp\n\t@grep -q right stamp\nstamp: src/word\n\t@cp src/word stamp\n",
      "src/word": "wrong\n",
    },
    checks: [{ kind: "command", run: ["make", "-s", "check"] }],
    spec: { ...spec },
  });
  await utimes(join(fixture.workspace, "stamp"), 1, 1);
  const baseline = await fixture.takeBaseline();
  await fixture.write("src/word", "still wrong\n");
  await fixture.write(`src/build.${ending}`, script("touch -d 2099-01-01 stamp . src/word"));
  expect(await fixture.verify(baseline)).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
  await fixture.write("src/word", "right\n");
  expect(await fixture.verify(baseline)).toMatchObject({ passed: true });
});

test("13: what the agent may deliver or the setup may make is not what code in the setup may write over what is protected", async () => {
  const options: TaskFixtureOptions = {
    files: { "src/build.sh": "true\n", "src/app.sh": "echo wrong\n", "src/want": "right\n" },
    checks: [
      { kind: "command", run: '[ "$(sh src/app.sh)" = "$(cat src/want)" ]' },
      { kind: "unchanged", paths: ["src/want"] },
    ],
    spec: { deliver: ["src/**"], setup: { run: "sh src/build.sh" } },
  };
  const cheat = (fixture: TaskFixture): Promise<void> => fixture.write("src/build.sh", "echo wrong > src/want\n");
  const asked = { passed: false, review: { reasons: [{ kind: "setup", files: ["src/want"] }] } };
  expect(await judge(options, cheat)).toMatchObject(asked);
  const setup = { run: "sh src/build.sh", makes: ["src/**"] };
  expect(await judge({ ...options, spec: { ...options.spec, setup, protect: ["src/want"] } }, cheat)).toMatchObject(
    asked,
  );
});

test("13: what a setup makes of the work counts where the spec says so, is named, and is proposed where it does not", async () => {
  const [language] = LANGUAGES;
  if (language === undefined) throw new Error("there is no language");
  const { files } = built(language);
  const honest = async (
    run: string,
    makes: readonly string[] | undefined,
    work: readonly [string, string],
  ): Promise<Verdict> =>
    judge(
      {
        files: { ...files, VERSION: "1\n", "gen.sh": "mkdir -p gen; cp VERSION gen/version; date +%N > gen/when\n" },
        checks: [{ kind: "command", run: 'grep -qs 2 gen/version || [ "$(sh dist/app.sh)" = right ]' }],
        spec: { deliver: ["src/**", "VERSION"], setup: { run, ...(makes === undefined ? {} : { makes: [...makes] }) } },
      },
      (fixture) => fixture.write(...work),
    );
  const version = ["VERSION", "2\n"] as const;
  const app = ["src/app.sh", "echo right\n"] as const;
  const build = "mkdir -p dist; cat src/*.sh > dist/app.sh";
  expect(await honest("sh gen.sh", ["gen/**"], version)).toMatchObject({
    passed: true,
    work: { made: ["gen/version", "gen/when"] },
  });
  expect(await honest(build, ["dist"], app)).toMatchObject({
    passed: true,
    work: { made: ["dist/app.sh"], madeCount: 1 },
  });
  const asked = await honest(build, undefined, app);
  expect(asked).toMatchObject({ passed: false, review: { reasons: [{ kind: "setup", files: ["dist/app.sh"] }] } });
  expect(asked.review?.reasons[0]?.message).toContain('makes: ["dist/**"]');
  // On the beginning alone it fails: nothing that it makes is the owner's.
  // A folder of the owner's is not replaced by what lies in it, whatever a glob matches.
  const narrow = await honest(
    "mkdir -p dist; echo exit 1 > dist/app.sh; sh src/app.sh",
    ["d*"],
    ["src/app.sh", "case $0 in dist/*) echo right;; *) rm -r dist; ln -s src dist;; esac\n"],
  );
  expect(narrow).toMatchObject({ passed: false, review: { reasons: [{ kind: "setup" }] } });
  const failing = await honest("grep -q right src/app.sh && mkdir dist && cp src/app.sh dist", undefined, app);
  expect(failing.review?.reasons[0]?.message).toContain("where the setup fails");
});

test("13: packages of a delivered lockfile are installed and count, and what their scripts write elsewhere does not", async () => {
  const check = 'if (require("dep") !== 2) process.exit(1);\n';
  await using fixture = await openTaskFixture({
    files: { "test/check.js": check, ...manifests("1"), ".gitignore": "node_modules\n" },
    checks: [{ kind: "command", run: [process.execPath, "test/check.js"] }],
    spec: {
      deliver: ["package.json", "package-lock.json"],
      setup: { run: "npm ci --offline --no-audit --no-fund --cache /tmp/npm", makes: ["node_modules/**"] },
    },
  });
  for (const version of ["1", "2"]) await pack(fixture, version);
  const baseline = await fixture.takeBaseline();
  const write = async (scripts: Readonly<Record<string, string>> = {}): Promise<void> => {
    for (const [path, content] of Object.entries(manifests("2", scripts))) await fixture.write(path, content);
  };
  await write();
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: true,
    work: { delivered: [{ path: "package-lock.json" }, { path: "package.json" }], othersCount: 0 },
  });
  await fixture.write("package.json", manifests("1", { postinstall: ": > test/check.js" })["package.json"] ?? "");
  await fixture.write("package-lock.json", manifests("1")["package-lock.json"] ?? "");
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: false,
    review: { reasons: [{ kind: "setup", files: ["test/check.js"] }] },
  });
});

/** Of a project that depends on `dep`, packed in the workspace. */
function manifests(version: string, scripts: Readonly<Record<string, string>> = {}): Record<string, string> {
  const dependencies = { dep: `file:dep-${version}.tgz` };
  const own = { name: "own", version: "1.0.0", dependencies };
  const installed = { version: `${version}.0.0`, resolved: dependencies.dep };
  const lock = {
    name: "own",
    version: "1.0.0",
    lockfileVersion: 3,
    packages: { "": own, "node_modules/dep": installed },
  };
  return { "package.json": JSON.stringify({ ...own, scripts }), "package-lock.json": JSON.stringify(lock) };
}

async function pack({ workspace, root }: TaskFixture, version: string): Promise<void> {
  const folder = join(root, "package");
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "dep", version: `${version}.0.0` }));
  await writeFile(join(folder, "index.js"), `module.exports = ${version};\n`);
  execFileSync("tar", ["czf", join(workspace, `dep-${version}.tgz`), "-C", root, "package"]);
  await rm(folder, { recursive: true });
}
