/**
 * Who may import whom. Packages import only downwards and are entered only by their declared exports; protocol and
 * dialects are pure: they know zod and nothing of Node; product code imports nothing made for tests.
 * Usage: node scripts/import-direction.ts [root]
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, posix } from "node:path";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";
import { importsOf } from "./imports.ts";
import { isTestFile, parseSource, sourceFiles } from "./source-files.ts";

const LOWER = ["protocol", "journal", "models", "tools"];
/** As in AGENTS.md. A package that is not in the table is an error. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  journal: ["protocol"],
  models: ["protocol"],
  tools: ["protocol"],
  agent: LOWER,
  tasks: [...LOWER, "agent"],
  dialects: ["protocol"],
  server: [...LOWER, "agent", "tasks", "dialects"],
  runtime: [...LOWER, "agent", "tasks", "dialects", "server"],
  cli: [...LOWER, "agent", "tasks", "dialects", "server", "runtime", "client"],
  client: ["protocol"],
  dashboard: ["protocol", "client"],
};
/** No I/O, no clock, no other library. */
const PURE = ["protocol", "dialects"];
const PURE_MAY_USE = ["zod"];
/** Where packages live: what is published or bundled, and what is built beside it. */
const HOMES = ["packages", "apps"];
/** Its source runs in browsers: it imports nothing of Node. */
const IN_BROWSERS = ["dashboard"];

interface Package {
  /** `packages/agent`, `apps/dashboard`. */
  readonly at: string;
  readonly folder: string;
  readonly name: string;
  readonly declared: ReadonlySet<string>;
  /** Declared ways in: `@heddle/models`, `@heddle/models/testing`. */
  readonly entries: ReadonlySet<string>;
}

interface Tree {
  readonly packages: readonly Package[];
  readonly declaredAtRoot: ReadonlySet<string>;
  /** What conformance/ installs for itself, beside what the root has. */
  readonly declaredForConformance: ReadonlySet<string>;
}

export function checkImportDirection(root: string): CheckResult {
  const tree = readTree(root);
  const findings: Finding[] = tree.packages
    .filter(({ folder }) => MAY_IMPORT[folder] === undefined)
    .map(({ at }) => ({ at, text: "has no row in MAY_IMPORT" }));
  const files = sourceFiles(root);
  for (const path of files) {
    for (const { line, specifier } of importsOf(parseSource(root, path))) {
      const text = specifier === undefined ? computed(path) : wrong({ path, specifier, tree });
      if (text !== undefined) findings.push({ at: `${path}:${line}`, text });
    }
  }
  return { examined: files.length, findings };
}

/** Only scripts and tests load what they were told at run time; product code could hide any import that way. */
function computed(path: string): string | undefined {
  if (!HOMES.some((home) => path.startsWith(`${home}/`)) || isTestFile(path)) return undefined;
  return "imports a path made at run time, which nobody can check; write it out";
}

interface Question {
  readonly path: string;
  readonly specifier: string;
  readonly tree: Tree;
}

/** What is wrong with an import, or nothing. */
function wrong(question: Question): string | undefined {
  const { path, specifier, tree } = question;
  if (specifier.startsWith(".") || specifier.startsWith("/")) return wrongRelative(path, specifier);
  const own = tree.packages.find(({ at }) => path.startsWith(`${at}/`));
  const target = tree.packages.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`));
  if (target !== undefined) return wrongPackage(question, { own, target });
  if (isBuiltin(specifier)) {
    if (!specifier.startsWith("node:")) return `write node:${specifier}`;
    if (own !== undefined && isForBrowsers(path, own))
      return `${own.folder} runs in browsers and imports nothing of Node`;
    return own !== undefined && PURE.includes(own.folder) && !isTestFile(path)
      ? `${own.folder} does no I/O and imports nothing of Node`
      : undefined;
  }
  return wrongOutside(question, own);
}

const IN_HOME = new RegExp(`^(?:${HOMES.join("|")})/[^/]+/`);

/** What is built for browsers: its source, and not what builds it or tests it. */
function isForBrowsers(path: string, { at, folder }: Package): boolean {
  return IN_BROWSERS.includes(folder) && path.startsWith(`${at}/src/`) && !isTestFile(path);
}

function wrongRelative(path: string, specifier: string): string | undefined {
  if (specifier.startsWith("/")) return "an absolute path is not the same on every machine";
  const target = posix.join(posix.dirname(path), specifier);
  const home = IN_HOME.exec(path)?.[0];
  const targetHome = IN_HOME.exec(target)?.[0];
  if (home !== targetHome && targetHome !== undefined) return "enters a package by a path; import it by its name";
  if (home !== undefined && targetHome === undefined) return "a package does not import from outside itself";
  if (/\.test\.[cm]?tsx?$/.test(target)) return "nothing imports from a test file";
  if (isTestFile(target) && !isTestFile(path)) return "product code does not import what was made for tests";
  return undefined;
}

function wrongPackage(
  { path, specifier, tree }: Question,
  { own, target }: { own: Package | undefined; target: Package },
): string | undefined {
  if (!target.entries.has(specifier)) return `${specifier} is not among the exports of ${target.name}`;
  if (specifier.endsWith("/testing") && IN_HOME.test(path) && !isTestFile(path)) {
    return "product code does not import what was made for tests";
  }
  if (own === undefined) return undefined;
  if (own === target) return "inside a package, import by a relative path";
  if (!(MAY_IMPORT[own.folder] ?? []).includes(target.folder)) {
    return `${own.folder} must not import ${target.folder}; it may import: ${MAY_IMPORT[own.folder]?.join(", ") || "nothing"}`;
  }
  return own.declared.has(target.name) ? undefined : notDeclared(target.name, tree);
}

function wrongOutside({ path, specifier, tree }: Question, own: Package | undefined): string | undefined {
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  const isForTests = isTestFile(path) && tree.declaredAtRoot.has(name);
  if (own !== undefined && PURE.includes(own.folder) && !isForTests && !PURE_MAY_USE.includes(name)) {
    return `${own.folder} imports only ${PURE_MAY_USE.join(", ")}`;
  }
  if (path.startsWith("conformance/") && tree.declaredForConformance.has(name)) return undefined;
  const declared = own?.declared ?? tree.declaredAtRoot;
  return declared.has(name) || isForTests ? undefined : notDeclared(name, tree);
}

function notDeclared(name: string, tree: Tree): string {
  const where = tree.declaredAtRoot.has(name) ? "the root's package.json, not in the package's own" : "no package.json";
  return `${name} is declared in ${where}`;
}

function readTree(root: string): Tree {
  const folders = HOMES.filter((home) => existsSync(join(root, home))).flatMap((home) =>
    readdirSync(join(root, home), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name: folder }) => ({ folder, at: `${home}/${folder}` })),
  );
  const packages = folders.map(({ folder, at }): Package => {
    const manifest = readManifest(join(root, at, "package.json"));
    const entries = Object.keys(manifest.exports ?? {}).map((key) => posix.join(manifest.name, key));
    return { at, folder, name: manifest.name, declared: declaredBy(manifest), entries: new Set(entries) };
  });
  const conformance = join(root, "conformance", "package.json");
  return {
    packages,
    declaredAtRoot: declaredBy(readManifest(join(root, "package.json"))),
    declaredForConformance: existsSync(conformance) ? declaredBy(readManifest(conformance)) : new Set(),
  };
}

interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

function readManifest(file: string): Manifest {
  // npm has read the same file before anything here could run.
  return JSON.parse(readFileSync(file, "utf8")) as Manifest;
}

function declaredBy(manifest: Manifest): ReadonlySet<string> {
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  return new Set(Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies }));
}

if (import.meta.main) runCheck(checkImportDirection);
