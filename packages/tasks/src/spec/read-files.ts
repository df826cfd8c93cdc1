/** Specs from a file, or from every file of a folder. */
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { HeddleError, isHeddleError, reasonOf } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { readFrontMatter } from "./front-matter.ts";
import { SpecError, type Problem } from "./positions.ts";
import { MAX_SPEC_BYTES, readSpec, type SpecOptions } from "./read-spec.ts";

const ENDINGS: ReadonlySet<string> = new Set([".yaml", ".yml", ".json", ".md", ".markdown"]);
const MAX_FILES = 1000;

export interface FoundSpec {
  readonly file: string;
  readonly spec: TaskSpec;
  /** Of the whole file; absent: not a file. */
  readonly sha256?: string;
}

export interface FoundSpecs {
  readonly found: readonly FoundSpec[];
  readonly warnings: readonly string[];
}

/** `cwd`: for shown file names. All problems of all files are reported at once. */
export async function readSpecFiles(
  given: string,
  options: SpecOptions & { readonly cwd: string },
): Promise<FoundSpecs> {
  const files = await filesAt(given);
  const found: FoundSpec[] = [];
  const warnings: string[] = [];
  const problems: Problem[] = [];
  for (const file of files.names) {
    const shown = shownName(file, options.cwd);
    try {
      const text = await readFile(file);
      if (files.isFolder && isPlainPage(file, text)) {
        warnings.push(`${shown}: skipped, a page without front matter is not a task`);
        continue;
      }
      const read = readSpec({ file: shown, text, folder: path.dirname(file) }, options);
      const sha256 = createHash("sha256").update(text).digest("hex");
      found.push(...read.specs.map((spec) => ({ file, spec, sha256 })));
      warnings.push(...read.warnings);
    } catch (error) {
      if (!(error instanceof SpecError)) throw readable(error, shown);
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new SpecError(problems);
  return { found: inOrder(found, options.cwd), warnings };
}

function shownName(file: string, cwd: string): string {
  const relative = path.relative(cwd, file);
  return relative === "" || relative.startsWith("..") ? file : relative;
}

async function filesAt(given: string): Promise<{ readonly names: readonly string[]; readonly isFolder: boolean }> {
  const found = await stat(given).catch(() => undefined);
  if (found === undefined)
    throw new HeddleError("usage.invalid", `${given} does not exist; heddle task init makes a first task`);
  if (found.isFile()) {
    if (found.size > MAX_SPEC_BYTES) throw tooLarge(given);
    return { names: [given], isFolder: false };
  }
  if (!found.isDirectory()) throw new HeddleError("usage.invalid", `${given} is neither a file nor a folder`);
  const entries = await readdir(given, { withFileTypes: true });
  const names = entries
    .filter(
      (entry) => entry.isFile() && !entry.name.startsWith(".") && ENDINGS.has(path.extname(entry.name).toLowerCase()),
    )
    .map(({ name }) => path.join(given, name))
    .toSorted();
  if (names.length === 0)
    throw new HeddleError("usage.invalid", `${given} has no task in it: no .yaml, .yml, .json or .md file`);
  if (names.length > MAX_FILES)
    throw new HeddleError("usage.invalid", `${given} has ${names.length} files; ${MAX_FILES} are the most`);
  for (const name of names) if ((await stat(name)).size > MAX_SPEC_BYTES) throw tooLarge(name);
  return { names, isFolder: true };
}

function tooLarge(file: string): SpecError {
  return new SpecError([{ file, line: 1, column: 1, key: "", message: "it is over 1 MiB; a task is a page or two" }]);
}

function isPlainPage(file: string, text: Buffer): boolean {
  return /\.(?:md|markdown)$/i.test(file) && readFrontMatter(text.toString("utf8")).front === undefined;
}

function readable(error: unknown, file: string): unknown {
  if (isHeddleError(error)) return error;
  const why = reasonOf(error);
  return new HeddleError("usage.invalid", `${file} cannot be read: ${why}`, { cause: error });
}

/** Dependencies first; cycles and ambiguous names are refused. */
function inOrder(found: readonly FoundSpec[], cwd: string): readonly FoundSpec[] {
  const byName = Map.groupBy(found, ({ spec }) => spec.name);
  const done = new Set<FoundSpec>();
  const open = new Set<FoundSpec>();
  const visit = (one: FoundSpec): void => {
    if (done.has(one)) return;
    if (open.has(one))
      throw wrong(one, `it waits for itself: ${[...open].map(({ spec }) => spec.name).join(" → ")}`, cwd);
    open.add(one);
    for (const name of one.spec.dependsOn) {
      const [first, second] = byName.get(name) ?? [];
      if (second !== undefined)
        throw wrong(one, `depends_on "${name}" could be any of several tasks; give them other names`, cwd);
      if (first !== undefined) visit(first);
    }
    open.delete(one);
    done.add(one);
  };
  for (const one of found) visit(one);
  return [...done];
}

function wrong({ file, spec }: FoundSpec, message: string, cwd: string): SpecError {
  const problem = {
    file: shownName(file, cwd),
    line: 1,
    column: 1,
    key: "depends_on",
    message: `${spec.name}: ${message}`,
  };
  return new SpecError([problem]);
}
