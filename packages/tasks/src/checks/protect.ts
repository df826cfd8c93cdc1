/**
 * What the agent must leave as it is, so that checks mean what they meant when the task began: the files the spec protects,
 * schemas, and, unless the spec says otherwise, tests and whatever check commands run from. New files are free.
 */
import { canonical, type CheckViolation, type LeafCheck, type TaskBaseline } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { globOf } from "./globs.ts";
import { leavesOf } from "./names.ts";
import { relativePath } from "./relative-path.ts";
import { filesOfCommand, manifestsOf } from "./run-files.ts";
import { listed } from "./shown.ts";
import { isTestFile } from "./test-files.ts";
import { sha256, type Workspace } from "./workspace.ts";

/** They are stored, and told to the agent; more say nothing new. */
const MAX_VIOLATIONS = 50;

type ProtectingSpec = Pick<TaskSpec, "checks" | "protect" | "protectTests">;

export interface Protected {
  /** Files that are there, by path. */
  readonly files: readonly string[];
  /** Those of them that the spec itself names. */
  readonly byName: ReadonlySet<string>;
  /** package.json → hash of what its scripts say. */
  readonly scripts: Readonly<Record<string, string>>;
}

export async function findProtected(files: Workspace, spec: ProtectingSpec): Promise<Protected> {
  const found = new Set<string>();
  const scripts: Record<string, string> = {};
  const commands = leavesOf(spec.checks).filter(isCommand);
  const globs = spec.protect.filter((glob) => !glob.startsWith("!"));
  for (const { path } of (await files.find(globs)).entries) found.add(path);
  const byName = new Set(found);
  if (spec.protectTests && commands.length > 0) {
    for (const { path } of (await files.find(["**"])).entries) if (isTestFile(path)) found.add(path);
  }
  for (const path of schemaFiles(spec)) if ((await files.hash(path)) !== undefined) found.add(path);
  if (spec.protectTests) {
    for (const check of commands) {
      for (const path of await filesOfCommand(check, files)) found.add(path);
      for (const path of await manifestsOf(check, files)) scripts[path] = await hashScripts(path, files);
    }
  }
  const free = spec.protect.filter((glob) => glob.startsWith("!")).map((glob) => globOf(glob.slice(1)));
  const isHeld = (path: string): boolean => !free.some(({ matches }) => matches(path));
  return {
    files: [...found].filter(isHeld).toSorted(),
    byName,
    scripts: Object.fromEntries(Object.entries(scripts).filter(([path]) => isHeld(path))),
  };
}

/** What was done to them since. */
export async function findViolations(
  files: Workspace,
  spec: ProtectingSpec,
  baseline: TaskBaseline,
): Promise<readonly CheckViolation[]> {
  const violations: CheckViolation[] = [];
  const judges = new Set(schemaFiles(spec));
  const hashes = await files.hashes(baseline.protected);
  for (const path of baseline.protected) {
    if (violations.length >= MAX_VIOLATIONS) break;
    const now = hashes.get(path);
    if (now === undefined) {
      violations.push({ kind: "protected-removed", path, message: `${path} is protected and was removed` });
    } else if (now !== baseline.files[path]) {
      const kind = judges.has(path) ? "check-changed" : "protected-changed";
      violations.push({ kind, path, message: `${path} is protected and was changed; ${RESTORE}` });
    }
  }
  for (const path of judges) {
    if (baseline.files[path] !== undefined || (await files.hash(path)) === undefined) continue;
    const message = `${path} is the schema of a check and was not there when the task began`;
    violations.push({ kind: "check-changed", path, message });
  }
  for (const [path, before] of Object.entries(baseline.scripts)) {
    if ((await hashScripts(path, files)) === before) continue;
    const message = `the scripts of ${path}, which checks run, were changed; ${RESTORE}`;
    violations.push({ kind: "check-changed", path, message });
  }
  if (baseline.isTruncated && baseline.protected.length > 0) {
    const message =
      "more files are protected or named by checks than a task remembers, so it cannot be told whether they stayed as they were; " +
      "set protectTests to false and name what matters in protect";
    violations.push({ kind: "protected-changed", message });
  }
  return violations;
}

const RESTORE = "put it back as it was";

/** What an agent is told of it beforehand, so that it need not find out by being rejected; "" when there is nothing. */
export function protectionText(spec: ProtectingSpec): string {
  const named = spec.protect.filter((glob) => !glob.startsWith("!"));
  const free = spec.protect.filter((glob) => glob.startsWith("!")).map((glob) => glob.slice(1));
  const tests = spec.protectTests && leavesOf(spec.checks).some(isCommand);
  const held = [
    ...(tests ? ["tests that exist", "what check commands run from"] : []),
    ...(schemaFiles(spec).length > 0 ? ["schemas of checks"] : []),
    ...named,
  ];
  if (held.length === 0) return "";
  const except = free.length === 0 ? "" : `, except ${listed(free)}`;
  const welcome = tests ? " New tests are welcome." : "";
  return `Work that changes what it is judged by is rejected: leave as they are ${held.join(", ")}${except}.${welcome}`;
}

function schemaFiles(spec: ProtectingSpec): readonly string[] {
  return leavesOf(spec.checks).flatMap((check) =>
    check.kind === "schema" && typeof check.schema === "string" ? [relativePath(check.schema)] : [],
  );
}

function isCommand(check: LeafCheck): check is Extract<LeafCheck, { kind: "command" | "tests" }> {
  return check.kind === "command" || check.kind === "tests";
}

/** Dependencies and versions may change; what is run, and how its runner is set up there, may not. */
async function hashScripts(path: string, files: Workspace): Promise<string> {
  const file = await files.read(path);
  if (file === undefined) return "";
  try {
    const { scripts, jest, mocha, ava, tap, vitest } = JSON.parse(file.text) as Readonly<Record<string, unknown>>;
    return sha256(canonical({ scripts, jest, mocha, ava, tap, vitest }));
  } catch {
    return file.sha256;
  }
}
