/**
 * Whether a changed file is what a check asks, or what it asks by. Two others stand in for it: one that does nothing, and so
 * finds everything right, and one that breaks off at once. Where a check passes with the first and not with the second, the
 * file is run and its word is taken: it judges. What source under test does is missed by its test, and a tool that only looks
 * at files, a compiler or a linter, is content with both.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { toRaw, toSystem, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { leavesOf, nameChecks } from "../checks/names.ts";
import { byPath, parentOf, sha256 } from "../tree/manifest.ts";
import { judgePicked, type ToJudge } from "./judge-picked.ts";
import { MAX_FILE_BYTES } from "./led-to.ts";
import { isPlainCommand } from "./named-work.ts";
import { openScratch } from "./scratch.ts";

export const BLANK = "\n";

/** Checks by their place among those that failed at the beginning. */
type Places = ReadonlySet<number>;

/** Some command that failed at the beginning, and reads it, takes its word. */
export async function isTakenAtItsWord(checkOptions: CheckOptions, toJudge: ToJudge, path: RawPath): Promise<boolean> {
  const standIns = standInsFor(path, textAt(toJudge, path));
  if (standIns === undefined) return false;
  const right = await passWith(checkOptions, toJudge, { path, text: standIns.right });
  if (right.size === 0) return false;
  const wrong = await passWith(checkOptions, toJudge, { path, text: standIns.wrong });
  return [...right].some((place) => !wrong.has(place));
}

/** Which commands that failed at the beginning, and read it, end well with this text in its place. */
export async function passWith(
  checkOptions: CheckOptions,
  { baseline, room }: ToJudge,
  { path, text }: { readonly path: RawPath; readonly text: string },
): Promise<Places> {
  const failed = nameChecks(checkOptions.spec.checks).filter(({ name }) => !baseline.passed.includes(name));
  const checks = leavesOf(failed.map(({ check }) => check))
    .filter(isPlainCommand)
    .map(({ run, cwd, timeoutMs, network }) => ({ kind: "command" as const, run, cwd, timeoutMs, network, exit: 0 }));
  await using scratch = await openScratch(checkOptions.home, "blank");
  mkdirSync(toSystem(`${toRaw(scratch.folder)}/${parentOf(path)}`), { recursive: true, mode: 0o700 });
  writeFileSync(toSystem(`${toRaw(scratch.folder)}/${path}`), text);
  const mode = (room.picked.find((one) => one.path === path)?.now ?? room.base.manifest.get(path))?.mode ?? 0o644;
  const mtimeNs = BigInt(Date.now()) * 1_000_000n;
  const now = { kind: "file", mode, size: Buffer.byteLength(text), mtimeNs, sha256: sha256(text) } as const;
  const other = { path, how: "changed", now, from: scratch.folder } as const;
  const isInPlace = (at: RawPath): boolean => at === path || at.startsWith(`${path}/`);
  const picked = [...room.picked.filter((one) => !isInPlace(one.path)), other].toSorted(byPath);
  const spec = { ...checkOptions.spec, checks };
  const { ran } = await judgePicked({ ...checkOptions, spec }, { baseline, room: { ...room, picked } }, "work");
  const isSo = ({ result, reads }: (typeof ran)[number]): boolean =>
    result.outcome === "passed" && (reads === undefined || reads.has(path));
  return new Set(ran.flatMap((one, place) => (isSo(one) ? [place] : [])));
}

function textAt({ room }: ToJudge, path: RawPath): string {
  const own = room.picked.find((one) => one.path === path);
  // Where there is no file any more, it is as it was at the beginning.
  const isFile = own?.now?.kind === "file";
  const folder = isFile ? (own.from ?? room.frozen?.folder ?? room.base.folder) : room.base.folder;
  const { size = 0 } = (isFile ? own.now : room.base.manifest.get(path)) ?? {};
  return size > MAX_FILE_BYTES ? "" : readFileSync(toSystem(`${toRaw(folder)}/${path}`), "latin1");
}

interface StandIns {
  /** Can be run, as a program or as a test, and has what others load from it; none of it does anything. */
  readonly right: string;
  readonly wrong: string;
}

/** undefined: nothing is known of such a language. */
function standInsFor(path: RawPath, text: string): StandIns | undefined {
  switch (posix.extname(path).toLowerCase()) {
    case ".js":
    case ".cjs":
    case ".mjs":
    case ".jsx":
    case ".ts":
    case ".cts":
    case ".mts":
    case ".tsx":
      return { right: emptyModule(text), wrong: 'throw new Error("wrong");\n' };
    case ".py":
      return { right: emptyPython(text), wrong: 'raise SystemExit("wrong")\n' };
    case ".sh":
    case ".bash":
      return { right: emptyFunctions(text), wrong: "exit 1\n" };
    case ".rb":
      return { right: BLANK, wrong: 'raise "wrong"\n' };
    case ".h":
    case ".hh":
    case ".hpp":
      return { right: BLANK, wrong: "#error wrong\n" };
    case ".c":
    case ".cc":
    case ".cpp":
    case ".cxx":
      return { right: "int main(void) { return 0; }\n", wrong: "int main(void) { return 1; }\n" };
    case ".rs":
      return {
        right: "fn main() {}\n\n#[test]\nfn passes() {}\n",
        wrong: "fn main() {\n    panic!();\n}\n\n#[test]\nfn fails() {\n    panic!();\n}\n",
      };
    case ".go": {
      const [head = "package main"] = /^package[ \t]+\w+/m.exec(text) ?? [];
      const start = head.endsWith(" main") ? "func main() {}\n" : "";
      return { right: `${head}\n\n${start}`, wrong: `${head}\n\nfunc init() { panic("wrong") }\n${start}` };
    }
    default:
      return undefined;
  }
}

const DECLARED = /\bexport\s+(?:async\s+)?(?:const|let|var|function\b\s*\*?|class)\s+([\w$]+)/g;
const LISTED = /\bexport\s*\{([^}]*)\}/g;
/** Where a file has its `test` from, if that is no global of its runner. */
const TEST_LOADED =
  /^[ \t]*(?:import\b[^;'"]*\b(?:test|it)\b[^;'"]*\bfrom\s*|(?:const|let|var)\b[^;='"]*\b(?:test|it)\b[^;='"]*=\s*require\s*\(\s*)["'][^"'\n]+["']\)?.*$/m;

/** It has as many tests as the file has, none of which does anything, and the names that others load from it. */
function emptyModule(text: string): string {
  const [loaded = ""] = TEST_LOADED.exec(text) ?? [];
  const count = Math.max(1, text.match(/^[ \t]*(?:test|it)\s*\(/gm)?.length ?? 0);
  const start = `${loaded}
const begin = typeof test === "function" ? test : typeof it === "function" ? it : function () {};
for (let at = 0; at < ${count}; at += 1) begin("passes " + at, () => {});
function nothing() {}
`;
  if (!/^\s*(import|export)\b/m.test(text)) {
    const said = JSON.stringify([...new Set(text.match(/[\w$]+/g))]);
    return `${start}const said = new Set(${said});
module.exports = new Proxy(function () {}, { get: (own, name) => (said.has(name) ? nothing : own[name]) });
`;
  }
  const listed = [...text.matchAll(LISTED)].flatMap(([, names = ""]) =>
    names.split(",").map(
      (name) =>
        name
          .trim()
          .split(/\s+as\s+/)
          .at(-1) ?? "",
    ),
  );
  const declared = [...text.matchAll(DECLARED)].map(([, name = ""]) => name);
  const names = new Set([...declared, ...listed].filter((name) => /^[\w$]+$/.test(name)));
  if (/\bexport\s+default\b/.test(text)) names.add("default");
  return `${start}export { ${[...names].map((name) => `nothing as ${name}`).join(", ")} };\n`;
}

const PYTHON_IMPORT = /^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(\([^)]*\)|.*)/gm;
const PYTHON_LINE = /^([ \t]*)(?:(?:async[ \t]+)?(def|class)[ \t]+(\w+)(.*)|(\w+)[ \t]*(?::[^=\n]+)?=(?!=).*)$/;
/** A name of the language's own (`__all__`) says how a file is loaded, and unittest asks `load_tests` for the tests. */
const PYTHON_LEFT_OUT = /^(__\w*|load_tests|unittest|nothing|Nothing)$/;

/** It answers for the names that the file has and for no other: a runner asks each module for names that most have not. */
function emptyPython(text: string): string {
  const imported = [...text.matchAll(PYTHON_IMPORT)].flatMap(([, names = ""]) =>
    names.split(/[(),#]/).map((name) => name.trim().split(/\s+/).at(-1) ?? ""),
  );
  const made = new Map(imported.filter((name) => /^[A-Za-z]\w*$/.test(name)).map((name) => [name, emptyValue(name)]));
  let inside: { readonly name: string; readonly indent: number } | undefined;
  let tests = 0;
  for (const line of text.split("\n")) {
    const [, space = "", how, defined = "", bases = "", assigned = ""] = PYTHON_LINE.exec(line) ?? [];
    const name = defined || assigned;
    if (name === "") continue;
    if (space.length <= (inside?.indent ?? 0)) inside = undefined;
    if (how === "def" && name.startsWith("test")) tests += 1;
    if (how === "def" && inside !== undefined && !name.startsWith("__"))
      made.set(inside.name, `${made.get(inside.name) ?? ""}    def ${name}(self, *values, **named):\n        pass\n`);
    else if (how === "class" && inside === undefined) {
      inside = { name, indent: space.length };
      made.set(name, `class ${name}(${bases.includes("TestCase") ? "unittest.TestCase" : "Nothing"}):\n    pass\n`);
    } else if (space === "" || how === "def") made.set(name, emptyValue(name));
  }
  const all = [...made].filter(([name]) => !PYTHON_LEFT_OUT.test(name)).map(([, lines]) => lines);
  return [EMPTY_PYTHON, ...all, tests === 0 ? EMPTY_PYTHON_TEST : ""].join("\n");
}

function emptyValue(name: string): string {
  return `${name} = nothing\n`;
}

const EMPTY_PYTHON = `import unittest

def nothing(*values, **named):
    pass

class Nothing:
    def __init__(self, *values, **named):
        pass
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing
`;
const EMPTY_PYTHON_TEST = `class Passes(unittest.TestCase):
    def test_passes(self):
        pass
`;

function emptyFunctions(text: string): string {
  const names = [...text.matchAll(/^[ \t]*(?:function[ \t]+)?([A-Za-z_]\w*)[ \t]*\(\)/gm)].map(([, name = ""]) => name);
  return `:\n${[...new Set(names)].map((name) => `${name}() { :; }\n`).join("")}`;
}
