import { TaskCheck, type TaskSpecInput, type WorkReview } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import type { Change } from "../tree/manifest.ts";
import { isGuardKind, isRun, namedByName, namedToGo, namedWork } from "./named-work.ts";
import { restable, restsReview } from "./rests.ts";

const entry = { kind: "file", mode: 0o644, size: 1, mtimeNs: 0n, sha256: "x" } as const;
const added = (path: string): Change => ({ path, how: "added", now: entry });
const changed = (path: string): Change => ({ path, how: "changed", now: entry, before: { ...entry, sha256: "y" } });
const removed = (path: string): Change => ({ path, how: "removed", before: entry });

const checksOf = (checks: NonNullable<TaskSpecInput["checks"]>): TaskCheck[] =>
  checks.map((check) => TaskCheck.parse(check));

function rested(
  checks: NonNullable<TaskSpecInput["checks"]>,
  changes: readonly Change[],
  reads?: readonly string[],
  passed: readonly string[] = [],
): readonly string[] {
  const spec = { checks: checksOf(checks) };
  const known = reads === undefined ? undefined : new Set(reads);
  return restable({
    changes,
    reads: known,
    commandReads: known,
    isMatched: namedWork(spec, passed, () => false),
    isNamed: namedWork(spec, passed),
    isNamedByName: namedByName(spec, passed),
    isToGo: namedToGo(spec),
    isRun: isRun(spec),
    mayRestOnTests: false,
  }).map(({ path }) => path);
}

const command = { kind: "command", run: "npm test" } as const;

test("13: a changed file that no check names is nothing to rest on, read or not", () => {
  expect(rested([command], [changed("src/a.js")], ["src/a.js"])).toEqual([]);
  expect(rested([command, { kind: "changed", paths: ["src/**"] }], [changed("src/a.js")], ["src/a.js"])).toEqual([
    "src/a.js",
  ]);
  // A limit demands nothing, and names nothing.
  expect(rested([command, { kind: "git", only: ["src/**"] }], [changed("src/a.js")], [])).toEqual([]);
});

test("13: new source counts where it was read, or where reads are not known; a test, a link and git's folder never", () => {
  const link: Change = { path: "src/link.js", how: "added", now: { ...entry, kind: "link", target: "a.js" } };
  const changes = [added("src/a.js"), added("src/b.js"), added("test/a.test.js"), added("conftest.py"), link];
  expect(rested([command], [...changes, added(".git/x.js")], ["src/a.js", "test/a.test.js", "src/link.js"])).toEqual([
    "src/a.js",
  ]);
  expect(rested([command], changes)).toEqual(["src/a.js", "src/b.js"]);
});

test("13: a wildcard names no test or configuration that a command reads; its own name does", () => {
  const changes = [changed("src/a.js"), changed("src/a.test.js"), changed("src/app.json")];
  const wide = { kind: "changed" as const, paths: ["src/**"] };
  expect(rested([command, wide], changes, ["src/a.js", "src/a.test.js"])).toEqual(["src/a.js", "src/app.json"]);
  const exact = { kind: "contains", path: "src/a.test.js", text: "x" } as const;
  expect(rested([command, wide, exact], changes, ["src/a.test.js"])).toContain("src/a.test.js");
});

test("13: a wildcard names no new configuration, no data and no helper of tests that a command reads", () => {
  const changes = [added("src/conftest.py"), added("src/data.bin"), changed("src/spec_helper.rb"), added("src/a.js")];
  const reads = changes.map(({ path }) => path);
  expect(rested([command, { kind: "changed", paths: ["src/**"] }], changes, reads)).toEqual(["src/a.js"]);
});

test("13: a check that passed before the work names nothing, alone, in a group or as a limit", () => {
  const test = { kind: "file-exists", path: "test/add.test.js" } as const;
  const script = { kind: "json", path: "package.json", at: "scripts.test", exists: true } as const;
  const changes = [changed("test/add.test.js"), changed("package.json")];
  expect(rested([command, test, script], changes, [])).toEqual(changes.map(({ path }) => path));
  const passed = ["file-exists test/add.test.js", "json package.json scripts.test"];
  expect(rested([command, test, script], changes, [], passed)).toEqual([]);
  const group = [command, { kind: "all" as const, of: [test, script] }];
  expect(rested(group, changes, [], ["all of 2"])).toEqual([]);
  expect(rested(group, changes, [], passed.slice(0, 1))).toEqual(["package.json"]);
});

test.each(["**", "*", ".", "**/*", "*.*", "[a-z]*", "{*,src}", "{[a]?,**}/*", ".*"])(
  "13: %s says no name, so that it names nothing as the work",
  (glob) => {
    const changes = [added(".skip-checks"), changed("src/a.js"), changed("strict.conf")];
    expect(rested([command, { kind: "changed", paths: [glob] }], changes, [])).toEqual([]);
  },
);

test("13: a wildcard beside a name, and alternatives that all are names, name the work", () => {
  const names = (glob: string): readonly string[] =>
    rested([command, { kind: "changed", paths: [glob] }], [changed("src/a.js")], []);
  for (const glob of ["src/**", "**/*.js", "{src,lib}/**", "s*/a.js"]) expect(names(glob), glob).toEqual(["src/a.js"]);
});

test("13: a folder that is to go may have anything in it", () => {
  const gone = [removed("old/a.test.js"), removed("old/app.json"), removed("old/a.js")];
  expect(rested([command, { kind: "file-absent", path: "old" }], gone, [])).toEqual(gone.map(({ path }) => path));
  expect(rested([command, { kind: "changed", paths: ["old/**"] }], gone, [])).toEqual(["old/a.js"]);
});

test("13: a folder by its name is no name of the tests in it that are gone", () => {
  const gone = [removed("src/a.js"), removed("src/tests/t.js")];
  expect(rested([command, { kind: "changed", paths: ["src"] }], gone, [])).toEqual(["src/a.js"]);
});

test("13: a wildcard names no configuration that became a folder, as it names none that is gone", () => {
  const folder: Change = { path: "src/lint.json", how: "changed", now: { ...entry, kind: "folder" }, before: entry };
  expect(rested([command, { kind: "changed", paths: ["src/**"] }], [folder], [])).toEqual([]);
});

test("13: new source that a command comes to by a shorter name is a judge; what it names in full is what it asks for", () => {
  const run = (line: string | string[], path: string): readonly string[] =>
    rested([{ kind: "command", run: line }], [added(path)], [path]);
  expect(run("python3 -m unittest suite", "unittest.py")).toEqual([]);
  expect(run("python3 -munittest suite", "unittest.py")).toEqual([]);
  expect(run("python3 -Bmunittest suite", "unittest.py")).toEqual([]);
  expect(run("python3 -m unittest suite", "unittest/__main__.py")).toEqual([]);
  expect(run(["sh", "-c", "python3 -m unittest suite"], "unittest.py")).toEqual([]);
  expect(run("cd ./x/ && python3 -m unittest suite", "x/unittest.py")).toEqual([]);
  expect(run("python3 -m tools.verify", "tools/verify.py")).toEqual([]);
  expect(run("node check", "check.js")).toEqual([]);
  expect(run("node ./tools/check", "tools/check/index.js")).toEqual([]);
  expect(run("sh tool.sh", "tool.sh")).toEqual(["tool.sh"]);
  expect(run("eslint src", "src/a.js")).toEqual(["src/a.js"]);
});

test("13: what a command runs is the work where a check demands it by its own name", () => {
  const run = { kind: "command", run: "node main.js", contains: "hello" } as const;
  expect(rested([run, { kind: "changed", paths: ["main.js"] }], [changed("main.js")], ["main.js"])).toEqual([
    "main.js",
  ]);
  expect(rested([run, { kind: "changed", paths: ["*.js"] }], [changed("main.js")], ["main.js"])).toEqual([]);
});

test("13: what judges is not the work by a wildcard: schemas, and files that a command names", () => {
  const checks: NonNullable<TaskSpecInput["checks"]> = [
    { kind: "schema", path: "data.json", schema: "data.schema.json" },
    { kind: "command", run: "sh check.sh && python -m tools.verify", cwd: "." },
    { kind: "changed", paths: ["*.sh", "tools/**", "data*"] },
  ];
  const changes = [changed("data.json"), changed("data.schema.json"), changed("check.sh"), changed("tools/verify.py")];
  expect(rested(checks, changes, [])).toEqual(["data.json"]);
});

test("13: under not only a check that did not pass before names the work", () => {
  const not = { kind: "not", of: { kind: "contains", path: "a.js", text: "TODO" } } as const;
  expect(rested([not], [changed("a.js")], [], ["contains a.js"])).toEqual(["a.js"]);
  expect(rested([not], [changed("a.js")], [], ["not contains a.js"])).toEqual([]);
});

test("13: the owner is told judges first, what is gone, and the line to add, without caches", () => {
  const changes = [
    changed("src/a.js"),
    changed("test/h.js"),
    removed("gone.cfg"),
    added("__pycache__/a.pyc"),
    added("n.js"),
  ];
  const review = restsReview(
    { changes, reads: new Set(["src/a.js", "test/h.js", "__pycache__/a.pyc", "n.js"]), isMatched: () => false },
    { rested: [added("n.js")], failing: ["command npm test"], isReadEnough: true },
  );
  expect(review.reasons[0]?.files).toEqual(["test/h.js", "gone.cfg", "src/a.js", "__pycache__/a.pyc"]);
  expect(review.reasons[0]?.message).toContain("test/h.js (changed test)");
  expect(review.deliver).toEqual(["n.js", "test/h.js", "gone.cfg", "src/a.js"]);
});

test("13: a file that is no source is called so, and a path of many folders is cut in its middle", () => {
  const deep = `${Array.from({ length: 200 }, (_, index) => `folder${index}`).join("/")}/data.bin`;
  const review = restsReview(
    { changes: [added(deep), added("a.bin")], reads: undefined, isMatched: () => false },
    { rested: [], failing: ["x"], isReadEnough: true },
  );
  const { message = "" } = review.reasons[0] ?? {};
  expect(message).toContain("a.bin (new, not source code)");
  expect(message).toMatch(/folder0\/folder1\/.*…\/.*folder199\/data\.bin \(new, not source code\)/);
  expect(message.length).toBeLessThan(600);
  expect(review.deliver).toContain(deep);
});

test("13: where reads are not known the owner is told so, and everything that changed is listed", () => {
  const changes = [changed("read.cfg"), changed("unread.cfg")];
  const message = (reads: ReadonlySet<string> | undefined): string | undefined =>
    restsReview({ changes, reads, isMatched: () => false }, { rested: [], failing: ["x"], isReadEnough: true })
      .reasons[0]?.message;
  expect(message(undefined)).toContain(
    "read.cfg (changed configuration), unread.cfg (changed configuration) (what checks read is not known on this host, so all that changed is listed)",
  );
  expect(message(new Set(["read.cfg"]))).not.toMatch(/unread|not known/);
});

test("13: what is proposed are these files and no other; more than can be accepted are counted", () => {
  const review = (changes: readonly Change[]): WorkReview =>
    restsReview(
      { changes, reads: undefined, isMatched: () => false },
      { rested: [], failing: ["x"], isReadEnough: true },
    );
  const folder: Change = { path: "strict", how: "changed", now: { ...entry, kind: "folder" }, before: entry };
  expect(review([changed("pages/[slug].js"), changed("!x.js"), folder, changed("\xff.js")]).deliver).toBeUndefined();
  expect(review([changed("pages/[slug].js"), changed("!x.js"), folder]).deliver?.toSorted()).toEqual(
    ["\\!x.js", "\\pages/[slug].js", "\\strict"].toSorted(),
  );
  const many = review(Array.from({ length: 2001 }, (_, index) => changed(`src/${index}.js`)));
  expect(many).toMatchObject({ reasons: [{ count: 2001 }] });
  expect(many.deliver).toBeUndefined();
  expect(many.reasons[0]?.files).toHaveLength(200);
});

test.each<[NonNullable<TaskSpecInput["checks"]>[number], boolean]>([
  [{ kind: "unchanged", paths: ["a"] }, true],
  [{ kind: "file-absent", path: "a" }, true],
  [{ kind: "git", only: ["a"], clean: true }, true],
  [{ kind: "git", commit: "" }, false],
  [{ kind: "not", of: { kind: "file-exists", path: "a" } }, true],
  [
    {
      kind: "all",
      of: [
        { kind: "unchanged", paths: ["a"] },
        { kind: "file-exists", path: "a" },
      ],
    },
    false,
  ],
  [{ kind: "command", run: "true" }, false],
])("13: %j is a guard: %s", (check, expected) => {
  expect(isGuardKind(TaskCheck.parse(check))).toBe(expected);
});
